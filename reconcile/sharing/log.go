// SPDX-License-Identifier: Apache-2.0

package sharing

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/reconcile"
)

// The keys of the ConfigMap that has the log.
const (
	keyLog     = "log"     // which log it is
	keyHead    = "head"    // the newest commit that may be folded
	keyParts   = "parts"   // the names of the ConfigMaps with the older entries, in order
	keyEntries = "entries" // the newest ones, a line of JSON each
)

// partSize is from which size on entries have a ConfigMap of their own, in bytes. It is
// written once, and read once by each replica: all that is read and written again and
// again is less than this.
const partSize = 64 << 10

// logLine is an entry of the log as it is written.
type logLine struct {
	After string `json:"after"`
	At    int64  `json:"at"`
	// Ready is by cluster, the others are by cluster and object.ID.Key().
	Ready  map[string]metav1.ConditionStatus      `json:"ready,omitempty"`
	Health map[string]map[string]propagate.Health `json:"health,omitempty"`
	Gone   map[string][]string                    `json:"gone,omitempty"`
}

// writtenLog is a log as the ConfigMaps have it, with what it says. It is never altered.
type writtenLog struct {
	*reconcile.Log
	parts   []string // the hashes of the texts of older entries
	inParts int      // how many those are
	tail    string   // the newest entries
}

// part is a run of entries that is not continued any more.
type part struct{ hash, text string }

// write is a log as the ConfigMaps have it, and the parts that another, which it may continue,
// does not have. Where a part ends depends on what is before that alone, so a log that is
// continued has the same parts. What is written by then is not written again.
func write(log, before *writtenLog) (added []part, err error) {
	var text strings.Builder
	more, ok := log.Entries, false
	if before != nil && before.ID == log.ID {
		more, ok = before.Continued(log.Entries)
	}
	if ok {
		log.parts, log.inParts = slices.Clip(before.parts), before.inParts
		text.WriteString(before.tail)
	} else {
		more = log.Entries
	}

	for i, e := range more {
		line, err := json.Marshal(lineOf(e))
		if err != nil {
			return nil, err
		}
		text.Write(line)
		text.WriteByte('\n')
		if text.Len() >= partSize {
			p := newPart(text.String())
			added = append(added, p)
			log.parts, log.inParts = append(log.parts, p.hash), len(log.Entries)-len(more)+i+1
			text.Reset()
		}
	}
	log.tail = text.String()
	return added, nil
}

func newPart(text string) part {
	sum := sha256.Sum256([]byte(text))
	return part{hex.EncodeToString(sum[:8]), text}
}

// read reads the entries of a log that is written so. Of another, which it may continue, what
// was read is not read again; part returns the text of one that is.
func (w *writtenLog) read(before *writtenLog, part func(hash string) (string, error)) error {
	if before == nil || len(before.parts) > len(w.parts) || !slices.Equal(before.parts, w.parts[:len(before.parts)]) {
		before = &writtenLog{Log: &reconcile.Log{}}
	}
	var texts strings.Builder
	for _, hash := range w.parts[len(before.parts):] {
		text, err := part(hash)
		if err != nil {
			return err
		}
		texts.WriteString(text)
	}
	texts.WriteString(w.tail)

	more, isLonger := strings.CutPrefix(texts.String(), before.tail)
	w.Entries = before.Entries
	if !isLonger {
		w.Entries = before.Entries[:before.inParts]
	}
	w.Entries = slices.Clip(w.Entries)
	for line := range strings.Lines(more) {
		e, err := parseLine(line)
		if err != nil {
			return fmt.Errorf("entry %d: %w", len(w.Entries)+1, err)
		}
		if n := len(w.Entries); n > 0 && e.At <= w.Entries[n-1].At {
			return fmt.Errorf("entry %d is not later than the one before", n+1)
		}
		w.Entries = append(w.Entries, e)
	}
	w.inParts = len(w.Entries) - strings.Count(w.tail, "\n")
	return nil
}

func lineOf(e reconcile.Entry) logLine {
	line := logLine{After: e.After, At: e.At, Ready: e.Ready}
	for p, health := range e.Health {
		if line.Health == nil {
			line.Health = map[string]map[string]propagate.Health{}
		}
		if line.Health[p.Cluster] == nil {
			line.Health[p.Cluster] = map[string]propagate.Health{}
		}
		line.Health[p.Cluster][p.Key()] = health
	}
	for _, p := range e.Gone {
		if line.Gone == nil {
			line.Gone = map[string][]string{}
		}
		line.Gone[p.Cluster] = append(line.Gone[p.Cluster], p.Key())
	}
	for _, keys := range line.Gone {
		slices.Sort(keys)
	}
	return line
}

// parseLine is the inverse of lineOf. What a later version adds is not known here, and what
// it means would be lost.
func parseLine(text string) (e reconcile.Entry, err error) {
	var line logLine
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&line); err != nil {
		return e, err
	}
	if line.After == "" || line.At <= 0 || line.At >= latest {
		return e, fmt.Errorf("after commit %q at %d", line.After, line.At)
	}

	e.After = line.After
	e.At, e.Ready = line.At, line.Ready
	place := func(cluster, key string) (propagate.Place, error) {
		id, ok := object.ParseKey(key)
		if !ok {
			return propagate.Place{}, fmt.Errorf("%q is no object", key)
		}
		return propagate.Place{Cluster: cluster, ID: id}, nil
	}
	for cluster, works := range line.Health {
		for key, health := range works {
			p, err := place(cluster, key)
			if err != nil {
				return e, err
			}
			if e.Health == nil {
				e.Health = map[propagate.Place]propagate.Health{}
			}
			e.Health[p] = health
		}
	}
	for cluster, keys := range line.Gone {
		for _, key := range keys {
			p, err := place(cluster, key)
			if err != nil {
				return e, err
			}
			e.Gone = append(e.Gone, p)
		}
	}
	return e, nil
}

// newLogID is one that no other log has.
func newLogID() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}
