// SPDX-License-Identifier: Apache-2.0

package checkpoint

import "fmt"

// GoneError is the error of a checkpoint whose commit is not in the repository any
// more: the branch was rewritten, and what was on it is collected, or another
// repository took its place (decision 47).
type GoneError struct{ Commit string }

// Error names the commit.
func (e *GoneError) Error() string {
	return fmt.Sprintf("commit %s, the last one that was folded, is not in the repository", e.Commit)
}
