// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func testLog(t *testing.T, dir string) (*Writer, *[]string) {
	t.Helper()
	var mu sync.Mutex
	told := &[]string{}
	e := NewWriter(dir, time.Now, func(err error) {
		mu.Lock()
		defer mu.Unlock()
		*told = append(*told, err.Error())
	})
	t.Cleanup(e.Close)
	return e, told
}

// Two files of a bounded size are kept. Whoever follows them meanwhile misses
// nothing, and whoever comes later has the newest.
func TestEventsAreBounded(t *testing.T) {
	dir := t.TempDir()
	e, _ := testLog(t, dir)
	reader := NewReader(dir)
	defer reader.Close()
	const n = 6000
	followed := 0
	for i := range n {
		e.Add(Event{Cluster: "eu-1", Object: &Object{Kind: "ConfigMap", Namespace: "shop", Name: "web"}, Type: Applied,
			Text: fmt.Sprintf("%d %s", i, strings.Repeat("x", 2000))})
		if i%100 != 99 {
			continue
		}
		e.Flush()
		more, err := reader.Next()
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range more {
			if !strings.HasPrefix(event.Text, fmt.Sprintf("%d ", followed)) {
				t.Fatalf("event %d is %.20q", followed, event.Text)
			}
			followed++
		}
	}
	if followed != n {
		t.Errorf("followed %d of %d", followed, n)
	}
	var size int64
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", entry.Name(), info.Mode())
		}
		size += info.Size()
	}
	if len(entries) != 2 || size > 2*eventsSize {
		t.Errorf("%d files with %d bytes", len(entries), size)
	}
	late, err := NewReader(dir).Next()
	if err != nil || len(late) == 0 || !strings.HasPrefix(late[len(late)-1].Text, fmt.Sprint(n-1)) {
		t.Errorf("%d events, %v", len(late), err)
	}
}

// A line that a crash has cut off is lost, and no other.
func TestEventsAfterACrash(t *testing.T) {
	dir := t.TempDir()
	e, _ := testLog(t, dir)
	e.Add(Event{Type: Noted, Text: "one"})
	e.Add(Event{Type: Noted, Text: "two"})
	e.Close()
	file := filepath.Join(dir, eventsFile)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text[:len(text)-9], 0o600); err != nil {
		t.Fatal(err)
	}
	after, _ := testLog(t, dir)
	after.Add(Event{Type: Noted, Text: "three"})
	after.Close()
	found, err := NewReader(dir).Next()
	if err != nil || len(found) != 2 || found[0].Text != "one" || found[1].Text != "three" {
		t.Errorf("found %+v, %v", found, err)
	}
}

// The record comes back when it can be written again, and its failure is told
// once, and not to itself.
func TestEventsComeBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e, told := testLog(t, dir)
	for range 3 {
		e.Add(Event{Type: Noted, Text: "lost"})
		e.Flush()
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	e.Add(Event{Type: Noted, Text: "kept"})
	e.Flush()
	failures := 0
	for _, text := range *told {
		if strings.HasPrefix(text, "the record of events is not written") {
			failures++
		}
	}
	found, err := NewReader(dir).Next()
	if err != nil || failures != 1 || len(found) != 1 || found[0].Text != "kept" {
		t.Errorf("told %q, found %+v, %v", *told, found, err)
	}
}

// BenchmarkEvent is what an act pays for being recorded.
func BenchmarkEvent(b *testing.B) {
	e := NewWriter(b.TempDir(), time.Now, func(error) {})
	defer e.Close()
	line := Event{Cluster: "eu-1", Object: &Object{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, Type: Applied}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			e.Add(line)
		}
	})
}
