// SPDX-License-Identifier: Apache-2.0

package member

import "fmt"

// Preempted is the error of a watch that gave its connection to a request that
// needed it more.
type Preempted struct{ Files int } // how many files the process may have open

// Error says what it costs.
func (p *Preempted) Error() string {
	return fmt.Sprintf("too few file descriptors to watch every cluster all the time (ulimit -n is %d): watches take turns, and drift is noticed later", p.Files)
}
