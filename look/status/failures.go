// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"

	"github.com/fairlead/fairlead/eventlog"
	"github.com/fairlead/fairlead/propagate"
)

// Failures are why a run could not do what it last tried, by object and cluster. They
// end with the next act on the object there.
type Failures map[propagate.Place]string

// Read goes on with events of the record of a run, oldest first.
func (f Failures) Read(record []eventlog.Event) {
	for _, e := range record {
		if e.Object == nil || e.Cluster == "" {
			continue
		}
		at := propagate.Place{Cluster: e.Cluster, ID: e.Object.ID()}
		if e.Type != eventlog.Failed {
			delete(f, at) // it was done, or waits for other clusters instead
			continue
		}
		f[at] = failed(OneLine(e.Text))
	}
}

// failed reads "apply failed: 403 Forbidden", where the record has "apply: 403 Forbidden".
func failed(text string) string {
	op, cause, found := strings.Cut(text, ": ")
	if !found || strings.Trim(op, "abcdefghijklmnopqrstuvwxyz") != "" {
		return text
	}
	return op + " failed: " + cause
}

// Reason is why a cell is in its state, with what a run has recorded about it.
func (c *Cell) Reason() string {
	if c.Failure == "" {
		return c.Why
	}
	return c.Why + ": " + c.Failure
}
