// SPDX-License-Identifier: Apache-2.0

package forge

import "strings"

// Result says what was written.
type Result struct {
	Comment string // posted, edited or unchanged
	URL     string // of the comment
	Alert   bool   // a short comment says what the push added
	Status  Status // what the commit has now
	Notes   []string
}

// String is the result as a line.
func (r Result) String() string {
	text := "comment " + r.Comment
	if r.Alert {
		text += ", and a new one says what the push adds"
	}
	text += "; " + r.Status.Context + " is " + string(r.Status.State)
	return strings.TrimSpace(text + "  " + r.URL)
}
