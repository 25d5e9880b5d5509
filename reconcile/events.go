// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fairlead/fairlead/propagate"
)

// The record of what a loop did, in the state directory beside the checkpoint
// (docs/design/0011-events.md). It is for people to read, and nothing is
// decided by it.
const (
	eventsFile    = "events.jsonl"
	eventsFileOld = "events.1.jsonl"
	// eventsSize is how long one file gets before the next begins.
	eventsSize = 4 << 20
	// eventsDelay is how long an event waits for others to be written with it.
	eventsDelay = 250 * time.Millisecond
)

// Event is one thing that a loop did, or that kept it from doing something.
type Event struct {
	Time time.Time `json:"time"`
	// Commit is the last one that was accepted by then; of a commit that is
	// refused or held it is that one.
	Commit  string       `json:"commit,omitempty"`
	What    What         `json:"what"`
	Cluster string       `json:"cluster,omitempty"`
	Object  *EventObject `json:"object,omitempty"`
	Text    string       `json:"text,omitempty"`
}

// EventObject is the object that an event is about.
type EventObject struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// ID is the object's identity.
func (o EventObject) ID() propagate.ID { return propagate.ID(o) }

// What is a word for an event.
type What string

// The words.
const (
	Applied  What = "applied"
	Adopted  What = "adopted"  // it was not ours, and is now
	Restored What = "restored" // it was changed by hand
	Deleted  What = "deleted"
	Released What = "released" // left running, without our marks
	Failed   What = "failed"
	Refused  What = "refused" // the commit
	HeldBack What = "held"    // the commit, for what it would delete
	Noted    What = "noted"
)

// acts are the words for what dispatch tells of.
var acts = map[string]What{"apply": Applied, "adopt": Adopted, "restore": Restored, "delete": Deleted, "release": Released}

// IsAct is whether a line is about something that was done to an object.
func (l Line) IsAct() bool {
	return l.Level == Act || slices.Contains([]What{Applied, Adopted, Restored, Deleted, Released}, l.What)
}

// eventLog writes the record. What cannot be written is lost and is said once:
// no cluster waits for it. A nil eventLog writes nothing.
type eventLog struct {
	dir  string
	now  func() time.Time
	tell func(Line) // not through the log itself

	mu     sync.Mutex
	commit string
	lines  bytes.Buffer
	wake   *time.Timer // set while lines wait

	writing sync.Mutex // held while the file is written; mu may be taken inside
	file    *os.File
	size    int64
	failure string
}

func newEventLog(dir string, now func() time.Time, tell func(Line)) *eventLog {
	return &eventLog{dir: dir, now: now, tell: tell}
}

// report passes lines on to whoever was told before, and records them.
func (e *eventLog) report(line Line) {
	e.tell(line)
	event := Event{What: line.What, Cluster: line.Cluster, Text: line.Text}
	switch {
	case line.What != "":
		event.Text = line.Note
	case line.Level == Warn:
		event.What = Failed
	default:
		event.What = Noted
	}
	if line.Object != (propagate.ID{}) {
		o := EventObject(line.Object)
		event.Object = &o
	}
	e.add(event, line.Commit)
}

// at says which commit the fleet is at from here on.
func (e *eventLog) at(commit string) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.commit = commit
}

func (e *eventLog) add(event Event, commit string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	event.Time, event.Commit = e.now().UTC(), commit
	if commit == "" {
		event.Commit = e.commit
	}
	raw, err := json.Marshal(event)
	if err != nil {
		panic(fmt.Sprintf("an event has no JSON: %v", err))
	}
	e.lines.Write(append(raw, '\n'))
	if e.wake == nil {
		e.wake = time.AfterFunc(eventsDelay, e.flush)
	}
}

// flush writes what waits.
func (e *eventLog) flush() {
	e.writing.Lock()
	defer e.writing.Unlock()
	e.mu.Lock()
	lines := bytes.Clone(e.lines.Bytes())
	e.lines.Reset()
	if e.wake != nil {
		e.wake.Stop()
		e.wake = nil
	}
	e.mu.Unlock()
	if len(lines) == 0 {
		return
	}
	err := e.write(lines)
	if err == nil {
		e.failure = ""
		return
	}
	e.let()
	if err.Error() != e.failure {
		e.failure = err.Error()
		e.tell(Line{Level: Warn, Text: fmt.Sprintf("the record of events is not written: %v", err)})
	}
}

func (e *eventLog) write(lines []byte) error {
	if e.file != nil && e.size+int64(len(lines)) > eventsSize {
		e.let()
		if err := os.Rename(filepath.Join(e.dir, eventsFile), filepath.Join(e.dir, eventsFileOld)); err != nil {
			return err
		}
	}
	if e.file == nil {
		if err := e.open(); err != nil {
			return err
		}
	}
	n, err := e.file.Write(lines)
	e.size += int64(n)
	return err
}

// open goes on with the file that is there. A process that was killed can have
// left half a line, which must not spoil the next.
func (e *eventLog) open() error {
	file, err := os.OpenFile(filepath.Join(e.dir, eventsFile), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	e.file, e.size = file, info.Size()
	last := []byte{'\n'}
	if e.size > 0 {
		if _, err := file.ReadAt(last, e.size-1); err != nil {
			return err
		}
	}
	if last[0] != '\n' {
		_, err = file.Write([]byte{'\n'})
		e.size++
	}
	return err
}

// let closes the file; the next write opens one.
func (e *eventLog) let() {
	if e.file != nil {
		_ = e.file.Close() // what was not written is lost, and nobody waits for it
		e.file = nil
	}
}

func (e *eventLog) close() {
	if e == nil {
		return
	}
	e.flush()
	e.writing.Lock()
	defer e.writing.Unlock()
	e.let()
}

// Events reads the record that a loop keeps in a state directory, also while
// that loop runs.
type Events struct {
	dir  string
	file *os.File
	rest []byte // of a line that is not complete yet
}

// OpenEvents reads the record in a state directory. There may be none yet.
func OpenEvents(dir string) *Events { return &Events{dir: dir} }

// Close lets the file go.
func (e *Events) Close() error {
	if e.file == nil {
		return nil
	}
	return e.file.Close()
}

// Next returns the events that were written since the last call, oldest first,
// or all that are kept at the first. It returns none, and no error, when there
// is no record.
func (e *Events) Next() ([]Event, error) {
	var found []Event
	if e.file == nil {
		old, err := os.ReadFile(filepath.Join(e.dir, eventsFileOld))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		found = parseEvents(old)
	}
	for {
		if e.file != nil {
			more, err := e.read()
			if found = append(found, more...); err != nil {
				return found, err
			}
		}
		next, err := e.renewed()
		if err != nil || next == nil {
			return found, err
		}
		if e.file != nil {
			// What was written between the read and the change of files.
			more, err := e.read()
			if found = append(found, more...); err != nil {
				return found, errors.Join(err, next.Close())
			}
			e.file.Close()
		}
		e.file, e.rest = next, nil
	}
}

// renewed is the file that takes the place of the one that is open, nil when
// that is still the one.
func (e *Events) renewed() (*os.File, error) {
	file, err := os.Open(filepath.Join(e.dir, eventsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || e.file == nil {
		return file, err
	}
	was, errWas := e.file.Stat()
	is, errIs := file.Stat()
	if err := errors.Join(errWas, errIs); err != nil || os.SameFile(was, is) {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func (e *Events) read() ([]Event, error) {
	more, err := io.ReadAll(e.file)
	text := append(e.rest, more...)
	end := bytes.LastIndexByte(text, '\n') + 1
	e.rest = bytes.Clone(text[end:])
	return parseEvents(text[:end]), err
}

// parseEvents leaves out what is no event: a line that was cut off by a crash.
func parseEvents(text []byte) []Event {
	var found []Event
	for line := range bytes.Lines(text) {
		var event Event
		if json.Unmarshal(line, &event) == nil && event.What != "" {
			found = append(found, event)
		}
	}
	return found
}
