// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"fmt"
	"io"
)

// Fprintf is fmt.Fprintf with every text among the arguments as a piece of a line:
// only the format breaks lines.
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	safe := make([]any, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			safe[i] = Line(arg)
		case error:
			safe[i] = Line(arg.Error())
		case fmt.Stringer:
			safe[i] = Line(arg.String())
		default:
			safe[i] = arg
		}
	}
	return fmt.Fprintf(w, format, safe...)
}
