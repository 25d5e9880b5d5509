// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/object"
)

// The same problem in the same words is told once; when an act went well and
// it comes again, it is told again.
func TestAProblemIsToldOnce(t *testing.T) {
	var told []string
	l := &Loop{reported: map[string]string{}, silent: map[string]time.Time{}, opt: Options{Clock: Clock{}.withDefaults(), Report: func(e Event) { told = append(told, e.String()) }}}
	down := dispatch.Outcome{Cluster: "eu-1", Err: errors.New("eu-1: no answer"), Waiting: 3}
	l.outcome(down)
	l.outcome(down)
	l.dispatched(dispatch.Event{Cluster: "eu-1", ID: object.ID{Kind: "ConfigMap", Name: "web"}, Op: dispatch.OpApply})
	l.outcome(down)
	want := []string{"eu-1: no answer; 3 objects wait", "eu-1: answers again", "eu-1: apply ConfigMap web", "eu-1: no answer; 3 objects wait"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
