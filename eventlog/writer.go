// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	eventsFile    = "events.jsonl"
	eventsFileOld = "events.1.jsonl"
	// eventsSize is the size in bytes at which a file is rotated.
	eventsSize = 4 << 20
	// eventsDelay is how long an event waits for others to be written with it.
	eventsDelay = 250 * time.Millisecond
)

// Writer writes the record. Events that cannot be written are lost, and each reason is
// reported once: no cluster waits for the record. A nil Writer writes nothing.
type Writer struct {
	dir    string
	now    func() time.Time
	failed func(error)

	mu     sync.Mutex
	commit string
	lines  bytes.Buffer
	wake   *time.Timer // set while lines wait

	writing sync.Mutex // held while the file is written; mu may be taken inside
	file    *os.File
	size    int64
	failure string
}

// NewWriter returns a writer to a directory, which need not exist yet. failed is called
// with the reasons why the record cannot be written, once each.
func NewWriter(dir string, now func() time.Time, failed func(error)) *Writer {
	return &Writer{dir: dir, now: now, failed: failed}
}

// At sets the commit that the fleet is at from now on.
func (w *Writer) At(commit string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commit = commit
}

// Add records an event with the current time. Without a commit it gets that of At.
func (w *Writer) Add(event Event) {
	if w == nil {
		return
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	event.Time, event.Commit = w.now().UTC(), cmp.Or(event.Commit, w.commit)

	raw, err := json.Marshal(event)
	if err != nil {
		panic(fmt.Sprintf("an event has no JSON: %v", err))
	}

	w.lines.Write(append(raw, '\n'))
	if w.wake == nil {
		w.wake = time.AfterFunc(eventsDelay, w.Flush)
	}
}

// Flush writes the pending events.
func (w *Writer) Flush() {
	w.writing.Lock()
	defer w.writing.Unlock()
	w.mu.Lock()
	lines := bytes.Clone(w.lines.Bytes())
	w.lines.Reset()
	if w.wake != nil {
		w.wake.Stop()
		w.wake = nil
	}
	w.mu.Unlock()
	if len(lines) == 0 {
		return
	}
	err := w.write(lines)
	if err == nil {
		w.failure = ""
		return
	}

	w.closeFile()
	if err.Error() != w.failure {
		w.failure = err.Error()
		w.failed(fmt.Errorf("the record of events is not written: %w", err))
	}
}

func (w *Writer) write(lines []byte) error {
	if w.file != nil && w.size+int64(len(lines)) > eventsSize {
		w.closeFile()
		if err := os.Rename(filepath.Join(w.dir, eventsFile), filepath.Join(w.dir, eventsFileOld)); err != nil {
			return err
		}
	}
	if w.file == nil {
		if err := w.open(); err != nil {
			return err
		}
	}
	n, err := w.file.Write(lines)
	w.size += int64(n)
	return err
}

// open appends to the existing file. A killed process may have left half a line, which
// must not corrupt the next one.
func (w *Writer) open() error {
	file, err := os.OpenFile(filepath.Join(w.dir, eventsFile), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}

	w.file, w.size = file, info.Size()
	last := []byte{'\n'}
	if w.size > 0 {
		if _, err := file.ReadAt(last, w.size-1); err != nil {
			return err
		}
	}
	if last[0] != '\n' {
		_, err = file.Write([]byte{'\n'})
		w.size++
	}

	return err
}

// closeFile closes the file; the next write opens one.
func (w *Writer) closeFile() {
	if w.file != nil {
		_ = w.file.Close() // an error can only lose events of the record
		w.file = nil
	}
}

// Close writes the pending events and closes the file.
func (w *Writer) Close() {
	if w == nil {
		return
	}
	w.Flush()
	w.writing.Lock()
	defer w.writing.Unlock()
	w.closeFile()
}
