// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// Writer passes text on, except for what is not printable. Lines and tabs stay.
type Writer struct{ to io.Writer }

// NewWriter returns a Writer to another one.
func NewWriter(to io.Writer) *Writer { return &Writer{to} }

// Unwrap returns the writer behind it, for what has to stay as it is.
func (w *Writer) Unwrap() io.Writer { return w.to }

// Write implements io.Writer. Each call has whole runes.
func (w *Writer) Write(p []byte) (int, error) {
	clean := bytes.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && r != utf8.RuneError && isHidden(r) {
			return ' '
		}
		return r
	}, p)
	if _, err := w.to.Write(clean); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Raw returns the writer behind a Writer, or the writer itself.
func Raw(w io.Writer) io.Writer {
	if p, ok := w.(*Writer); ok {
		return p.Unwrap()
	}
	return w
}
