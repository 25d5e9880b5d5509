// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"slices"
	"testing"

	"github.com/fairlead/fairlead/dispatch"
)

// The same problem in the same words is told once; when it is over and comes
// again it is told again.
func TestAProblemIsToldOnce(t *testing.T) {
	var told []string
	l := &Loop{reported: map[string]string{}, opt: Options{Report: func(line Line) { told = append(told, line.Text) }}}
	down := []dispatch.Outcome{{Cluster: "eu-1", Err: errors.New("eu-1: no answer"), Waiting: 3}}
	for _, outcomes := range [][]dispatch.Outcome{down, down, nil, down} {
		l.tell(outcomes)
	}
	want := []string{"eu-1: no answer (3 objects waiting)", "eu-1: no answer (3 objects waiting)"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
