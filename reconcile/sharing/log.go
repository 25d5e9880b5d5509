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

// writtenLog is a log as the ConfigMaps have it.
type writtenLog struct {
	id, head string
	parts    []part
	tail     string
}

// part is a run of entries that is not continued any more.
type part struct{ hash, text string }

// write is a log as the ConfigMaps have it. Where a part ends depends on what is before
// that alone, so a log that is continued has the same parts.
func write(log *reconcile.Log) (writtenLog, error) {
	w := writtenLog{id: log.ID, head: log.Head}
	var text strings.Builder
	for _, e := range log.Entries {
		line, err := json.Marshal(lineOf(e))
		if err != nil {
			return w, err
		}
		text.Write(line)
		text.WriteByte('\n')
		if text.Len() >= partSize {
			w.parts = append(w.parts, newPart(text.String()))
			text.Reset()
		}
	}
	w.tail = text.String()
	return w, nil
}

func newPart(text string) part {
	sum := sha256.Sum256([]byte(text))
	return part{hex.EncodeToString(sum[:8]), text}
}

// read is the log that is written so.
func (w *writtenLog) read() (*reconcile.Log, error) {
	log := &reconcile.Log{ID: w.id, Head: w.head}
	texts := make([]string, 0, len(w.parts)+1)
	for _, p := range w.parts {
		texts = append(texts, p.text)
	}
	for _, text := range append(texts, w.tail) {
		for line := range strings.Lines(text) {
			e, err := parseLine(line)
			if err != nil {
				return nil, fmt.Errorf("entry %d: %w", len(log.Entries)+1, err)
			}
			if n := len(log.Entries); n > 0 && e.At <= log.Entries[n-1].At {
				return nil, fmt.Errorf("entry %d is not later than the one before", n+1)
			}
			log.Entries = append(log.Entries, e)
		}
	}
	return log, nil
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
