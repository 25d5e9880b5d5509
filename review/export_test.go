// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/plan"
)

// Work does what is due, as Run does, and returns when there may be more.
func (r *Reviewer) Work(ctx context.Context) time.Duration { return r.work(ctx) }

// SetMost bounds the list of pull requests.
func (r *Reviewer) SetMost(n int) { r.most = n }

// SetMostBytes bounds what one fetch brings.
func (r *Reviewer) SetMostBytes(n int64) { r.mostBytes = n }

// SetMake has plans made by a function, until undo is called.
func SetMake(f func(*history.States, plan.Request) (*plan.Plan, error)) (undo func()) {
	was := makePlan
	makePlan = f
	return func() { makePlan = was }
}

// Plan makes a plan of nothing.
func (r *Reviewer) Plan(ctx context.Context) (*plan.Plan, error) {
	return r.plan(ctx, nil, plan.Request{})
}

// Await waits for a plan that has outlived its deadline.
func (r *Reviewer) Await() { <-r.unended }

// SetApart changes the time between two times that all are planned.
func SetApart(d time.Duration) (undo func()) {
	was := apart
	apart = d
	return func() { apart = was }
}
