// SPDX-License-Identifier: Apache-2.0

// Package compact writes and reads many values that are much alike. What repeats is
// there once, and is decoded once; a checksum covers all of it. It knows no file.
package compact

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

var table = crc32.MakeTable(crc32.Castagnoli)

// ErrDamaged is the error of bytes that no Writer wrote.
var ErrDamaged = errors.New("damaged")

// Writer collects values. Its zero value is ready.
type Writer struct {
	texts []string
	at    map[string]uint64
	body  []byte
}

// Uint writes a number.
func (w *Writer) Uint(n int) { w.body = binary.AppendUvarint(w.body, uint64(n)) }

// Bool writes a boolean.
func (w *Writer) Bool(b bool) {
	n := 0
	if b {
		n = 1
	}
	w.Uint(n)
}

// Text writes a text, which is stored once.
func (w *Writer) Text(s string) {
	if w.at == nil {
		w.at = map[string]uint64{}
	}
	i, ok := w.at[s]
	if !ok {
		i = uint64(len(w.texts))
		w.at[s] = i
		w.texts = append(w.texts, s)
	}
	w.body = binary.AppendUvarint(w.body, i)
}

// Raw writes bytes of which the reader knows how many there are.
func (w *Writer) Raw(b []byte) { w.body = append(w.body, b...) }

// JSON writes a value as JSON. Equal values are stored once.
func (w *Writer) JSON(v any) error {
	raw, err := json.Marshal(v)
	if err == nil {
		w.Text(string(raw))
	}
	return err
}

// Bytes returns all that was written, under the name of a format.
func (w *Writer) Bytes(format string) []byte {
	out := append([]byte(format), 0)
	out = binary.AppendUvarint(out, uint64(len(w.texts)))
	for _, s := range w.texts {
		out = binary.AppendUvarint(out, uint64(len(s)))
		out = append(out, s...)
	}

	out = append(out, w.body...)
	return binary.BigEndian.AppendUint32(out, crc32.Checksum(out, table))
}

// Reader reads what a Writer wrote, in the same order. After the first error every read
// returns a zero value, and Err the error.
type Reader struct {
	texts   []string
	decoded []any
	rest    []byte
	err     error
}

// NewReader returns a reader of bytes of a format, whose checksum is right.
func NewReader(format string, b []byte) (*Reader, error) {
	end := len(b) - 4
	if end < len(format)+1 || string(b[:len(format)]) != format || b[len(format)] != 0 {
		return nil, fmt.Errorf("%w: not of the format %s", ErrDamaged, format)
	}
	if crc32.Checksum(b[:end], table) != binary.BigEndian.Uint32(b[end:]) {
		return nil, fmt.Errorf("%w: the checksum is another", ErrDamaged)
	}

	r := &Reader{rest: b[len(format)+1 : end]}
	texts := string(r.rest) // one allocation, of which every text is a part
	n := r.Count()
	r.texts, r.decoded = make([]string, n), make([]any, n)
	for i := range r.texts {
		size := r.Count()
		from := len(texts) - len(r.rest)
		r.texts[i] = texts[from : from+size]
		r.rest = r.rest[size:]
	}
	return r, r.err
}

// Err is the first error.
func (r *Reader) Err() error { return r.err }

// Done returns the first error, or one if something is left.
func (r *Reader) Done() error {
	if r.err == nil && len(r.rest) > 0 {
		r.fail("%d bytes are left", len(r.rest))
	}
	return r.err
}

func (r *Reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
	}
	r.rest = nil
}

// Uint reads a number.
func (r *Reader) Uint() int {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > math.MaxInt {
		r.fail("it ends in a number")
		return 0
	}
	r.rest = r.rest[size:]
	return int(n)
}

// Count reads the number of values that follow, each of which takes a byte or more.
func (r *Reader) Count() int {
	n := r.Uint()
	if n > len(r.rest) {
		r.fail("%d values do not follow", n)
		return 0
	}
	return n
}

// Bool reads a boolean.
func (r *Reader) Bool() bool { return r.Uint() == 1 }

func (r *Reader) index() int {
	i := r.Uint()
	if r.err == nil && i >= len(r.texts) {
		r.fail("text %d of %d", i, len(r.texts))
	}
	return i
}

// Text reads a text.
func (r *Reader) Text() string {
	i := r.index()
	if r.err != nil {
		return ""
	}
	return r.texts[i]
}

// Raw reads so many bytes into b.
func (r *Reader) Raw(b []byte) {
	if len(b) > len(r.rest) {
		r.fail("it ends in %d bytes", len(b))
		return
	}
	copy(b, r.rest)
	r.rest = r.rest[len(b):]
}

// JSON reads a value that JSON of a Writer wrote. Values that are equal are decoded
// once, and shared: nobody may write to them. One text is read as one type.
func JSON[T any](r *Reader) (v T) {
	i := r.index()
	if r.err != nil {
		return v
	}
	if known, ok := r.decoded[i].(T); ok {
		return known
	}
	if err := json.Unmarshal([]byte(r.texts[i]), &v); err != nil {
		r.fail("%v", err)
		return v
	}
	r.decoded[i] = v
	return v
}
