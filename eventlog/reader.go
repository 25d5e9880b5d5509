// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Reader reads the record that a loop keeps in a state directory, even while the loop
// runs. A nil Reader reads nothing.
type Reader struct {
	dir  string
	file *os.File
	rest []byte // of a line that is not complete yet
}

// NewReader returns a reader of the record in a state directory. The record need not
// exist yet.
func NewReader(dir string) *Reader { return &Reader{dir: dir} }

// Close closes the file.
func (r *Reader) Close() error {
	if r == nil || r.file == nil {
		return nil
	}
	return r.file.Close()
}

// Next returns the events that were written since the last call, oldest first; the
// first call returns all that are kept. Without a record it returns none, and no
// error.
func (r *Reader) Next() ([]Event, error) {
	if r == nil {
		return nil, nil
	}

	var found []Event
	if r.file == nil {
		old, err := os.ReadFile(filepath.Join(r.dir, eventsFileOld))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		found = parseEvents(old)
	}
	for {
		if r.file != nil {
			more, err := r.read()
			if found = append(found, more...); err != nil {
				return found, err
			}
		}
		next, err := r.rotated()
		if err != nil || next == nil {
			return found, err
		}
		if r.file != nil {
			// What was written between the read and the change of files.
			more, err := r.read()
			if found = append(found, more...); err != nil {
				return found, errors.Join(err, next.Close())
			}
			r.file.Close()
		}
		r.file, r.rest = next, nil
	}
}

// rotated opens the file that has replaced the open one; it returns nil if none has.
func (r *Reader) rotated() (*os.File, error) {
	file, err := os.Open(filepath.Join(r.dir, eventsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || r.file == nil {
		return file, err
	}

	was, errWas := r.file.Stat()
	is, errIs := file.Stat()
	if err := errors.Join(errWas, errIs); err != nil || os.SameFile(was, is) {
		return nil, errors.Join(err, file.Close())
	}

	return file, nil
}

func (r *Reader) read() ([]Event, error) {
	more, err := io.ReadAll(r.file)
	text := append(r.rest, more...)
	end := bytes.LastIndexByte(text, '\n') + 1
	r.rest = bytes.Clone(text[end:])
	return parseEvents(text[:end]), err
}

// parseEvents skips lines that are not events, such as one that a crash cut off.
func parseEvents(text []byte) []Event {
	var found []Event
	for line := range bytes.Lines(text) {
		var event Event
		if json.Unmarshal(line, &event) == nil && event.Type != "" {
			found = append(found, event)
		}
	}
	return found
}
