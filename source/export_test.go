// SPDX-License-Identifier: Apache-2.0

package source

import "time"

// SetMaxSilence shortens how long a server may be silent, and returns what undoes it.
func SetMaxSilence(d time.Duration) (undo func()) {
	was := maxSilence
	maxSilence = d
	return func() { maxSilence = was }
}
