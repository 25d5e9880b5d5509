// SPDX-License-Identifier: Apache-2.0

package compact_test

import (
	"errors"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead/fairlead/compact"
)

type pair struct {
	A int
	B map[string]string
}

// What was written is read again, and what repeats is stored once.
func TestReadsWhatWasWritten(t *testing.T) {
	var w compact.Writer
	value := pair{7, map[string]string{"x": "y"}}
	for range 100 {
		w.Text("a long text that stands there many times")
		w.Uint(300)
		w.Bool(true)
		w.Raw([]byte{1, 2})
		if err := w.JSON(value); err != nil {
			t.Fatal(err)
		}
	}
	b := w.Bytes("pairs 1")
	if len(b) > 1000 {
		t.Errorf("%d bytes", len(b))
	}

	r, err := compact.NewReader("pairs 1", b)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		raw := make([]byte, 2)
		text, n, is := r.Text(), r.Uint(), r.Bool()
		r.Raw(raw)
		got := compact.JSON[pair](r)
		if text != "a long text that stands there many times" || n != 300 || !is || raw[1] != 2 || got.A != 7 || !maps.Equal(got.B, value.B) {
			t.Fatalf("%q %d %v %v %v", text, n, is, raw, got)
		}
	}
	if err := r.Done(); err != nil {
		t.Error(err)
	}

	if _, err := compact.NewReader("pairs 2", b); !errors.Is(err, compact.ErrDamaged) {
		t.Errorf("another format: %v", err)
	}
	for i := range b {
		b[i] ^= 0x20
		if _, err := compact.NewReader("pairs 1", b); !errors.Is(err, compact.ErrDamaged) {
			t.Fatalf("byte %d is another: %v", i, err)
		}
		b[i] ^= 0x20
	}
}

// Nothing that is read panics, allocates more than it is long, or goes on forever.
func TestReadsAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w compact.Writer
		w.Raw(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes"))
		w.Text("x")
		r, err := compact.NewReader("f", w.Bytes("f"))
		if err != nil {
			t.Fatal(err)
		}
		for range 30 {
			switch rapid.IntRange(0, 5).Draw(t, "read") {
			case 0:
				r.Uint()
			case 1:
				if n := r.Count(); n > 50 {
					t.Fatalf("%d values of 50 bytes", n)
				}
			case 2:
				r.Text()
			case 3:
				r.Raw(make([]byte, 8))
			case 4:
				compact.JSON[pair](r)
			case 5:
				r.Bool()
			}
		}
		if r.Done() == nil {
			return
		}
		if r.Uint() != 0 || r.Text() != "" {
			t.Fatal("a value after an error")
		}
	})
}
