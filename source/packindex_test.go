// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
)

// Our index of a pack finds what go-git's finds, also hashes that are not spread evenly
// and offsets of more than four bytes.
func TestPackIndexFindsWhatGoGitFinds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, hash := range map[string]func(i int) (h plumbing.Hash){
		"spread evenly": func(int) (h plumbing.Hash) {
			for i := range h {
				h[i] = byte(rng.Uint32())
			}
			return h
		},
		"close to each other": func(i int) (h plumbing.Hash) {
			h[0], h[18], h[19] = 7, byte(i>>8), byte(i)
			return h
		},
		"at both ends": func(i int) (h plumbing.Hash) {
			if i%2 == 0 {
				h = plumbing.NewHash("ffffffffffffffffffffffffffffffffffff0000")
			}
			h[18], h[19] = byte(i>>8), byte(i)
			return h
		},
	} {
		for _, count := range []int{0, 1, 2, 17, 3000, 60_000} {
			var writer idxfile.Writer
			if err := writer.OnHeader(uint32(count)); err != nil {
				t.Fatal(err)
			}
			var hashes []plumbing.Hash
			for i := range count {
				h, offset := hash(i), int64(12+i*50)
				if i%7 == 3 {
					offset += 5 << 32
				}
				hashes = append(hashes, h)
				if err := writer.OnInflatedObjectContent(h, offset, 1, nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := writer.OnFooter(packName); err != nil {
				t.Fatal(err)
			}
			want, err := writer.Index()
			if err != nil {
				t.Fatal(err)
			}
			var file bytes.Buffer
			if _, err := idxfile.NewEncoder(&file).Encode(want); err != nil {
				t.Fatal(err)
			}
			got, err := readPackIndex(bytes.NewReader(file.Bytes()), int64(file.Len()))
			if err != nil {
				t.Fatalf("%s, %d: %v", name, count, err)
			}
			for _, h := range append(hashes, hash(count), hash(count+1), plumbing.ZeroHash) {
				a, errA := want.FindOffset(h)
				b, errB := got.FindOffset(h)
				if a != b || (errA == nil) != (errB == nil) {
					t.Fatalf("%s, %d: %s is at %d (%v), want %d (%v)", name, count, h, b, errB, a, errA)
				}
				if errA != nil {
					continue
				}
				if back, err := got.FindHash(a); back != h || err != nil {
					t.Fatalf("%s, %d: at %d is %s (%v), want %s", name, count, a, back, err, h)
				}
				if back, err := got.FindHash(a + 1); !errors.Is(err, plumbing.ErrObjectNotFound) {
					t.Fatalf("%s, %d: at %d is %s", name, count, a+1, back)
				}
			}
			sameEntries(t, want.EntriesByOffset, got.EntriesByOffset)
		}
	}
}

var packName = plumbing.NewHash("0123456789012345678901234567890123456789")

func sameEntries(t *testing.T, want, got func() (idxfile.EntryIter, error)) {
	t.Helper()
	a, errA := want()
	b, errB := got()
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	for {
		x, errX := a.Next()
		y, errY := b.Next()
		if !errors.Is(errX, errY) {
			t.Fatal(errX, errY)
		}
		if errors.Is(errX, io.EOF) {
			return
		}
		if x.Hash != y.Hash || x.Offset != y.Offset {
			t.Fatalf("%+v, want %+v", y, x)
		}
	}
}

// An index that is cut off, or in which one byte differs, is an error: it must not say
// that an object is missing, or where another one is.
func TestPackIndexThatIsDamaged(t *testing.T) {
	var writer idxfile.Writer
	_ = writer.OnHeader(3)
	for i := range 3 {
		h := packName
		h[5] = byte(i)
		_ = writer.OnInflatedObjectContent(h, int64(12+i*50), 1, nil)
	}
	_ = writer.OnFooter(packName)
	index, err := writer.Index()
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := idxfile.NewEncoder(&file).Encode(index); err != nil {
		t.Fatal(err)
	}
	for i := range file.Len() {
		damaged := bytes.Clone(file.Bytes())
		damaged[i] ^= 0x20
		if _, err := readPackIndex(bytes.NewReader(damaged), int64(len(damaged))); err == nil {
			t.Fatalf("byte %d may differ", i)
		}
		if _, err := readPackIndex(bytes.NewReader(file.Bytes()[:i]), int64(i)); err == nil {
			t.Fatalf("it may end after %d bytes", i)
		}
	}
}
