// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/plan"
)

var (
	errBusy  = errors.New("an earlier plan is not at its end yet")
	errMoved = errors.New("the commit that the forge has listed was not fetched: the next look has another one")
	errPanic = errors.New("it has made fairlead fail: this is a defect")
)

// made is what planning came to.
type made struct {
	plan *plan.Plan
	err  error
}

// plan makes a plan when it is its turn. One that outlives its deadline is left to itself:
// what work costs is counted, so it ends, and before that no other one is begun. The turn
// is given back, for loops do not wait for plans.
func (r *Reviewer) plan(ctx context.Context, states *history.States, q plan.Request) (*plan.Plan, error) {
	if r.unended != nil {
		select {
		case <-r.unended:
			r.unended = nil
		default:
			return nil, errBusy
		}
	}
	done, err := r.opt.Turn(ctx)
	if err != nil {
		return nil, err
	}
	defer done()

	q.Now = time.Now()
	ended, result := make(chan struct{}), made{}
	go func() {
		defer close(ended)
		result = safely(states, q)
	}()

	late := time.NewTimer(r.opt.Deadline)
	defer late.Stop()
	select {
	case <-ended:
		return result.plan, result.err
	case <-late.C:
		r.unended = ended
		return nil, fmt.Errorf("it takes longer than %s", r.opt.Deadline)
	case <-ctx.Done():
		r.unended = ended
		return nil, ctx.Err()
	}
}

// safely makes a plan. What a panic says may quote the change, so it is not passed on.
func safely(states *history.States, q plan.Request) (m made) {
	defer func() {
		if recover() != nil {
			m = made{err: errPanic}
		}
	}()
	p, err := makePlan(states, q)
	return made{p, err}
}

// makePlan is replaced by tests.
var makePlan = plan.Make
