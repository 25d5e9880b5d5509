// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Converting a number out of range to an integer type has processor-dependent
// results in Go, so numbers are converted here only.

// limit exceeds every index, width and count that a script can use.
const limit = 1 << 30

// integer truncates a number, to at most limit either way.
func integer(n lua.LNumber) int {
	switch {
	case n != n:
		return 0
	case n >= limit:
		return limit
	case n <= -limit:
		return -limit
	}

	return int(n)
}

// integer64 truncates a number that fits into 64 bits.
func integer64(n lua.LNumber) (int64, bool) {
	if n != n || n >= 1<<63 || n < -1<<63 {
		return 0, false
	}
	return int64(n), true
}

// digits formats a number as a script sees it.
func digits(n lua.LNumber) string {
	if i, ok := integer64(n); ok && lua.LNumber(i) == n {
		return strconv.FormatInt(i, 10)
	}
	return fmt.Sprint(float64(n))
}

// plain formats a value as a script sees it.
func plain(v lua.LValue) string {
	if n, ok := v.(lua.LNumber); ok {
		return digits(n)
	}
	return v.String()
}

// toNumber converts a number, or a string that reads as one.
func (r *run) toNumber(v lua.LValue) (lua.LNumber, bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return v, true
	case lua.LString:
		r.spend(len(v) / digitsPerStep)
		text := strings.Trim(string(v), " \t\n")
		if i, err := strconv.ParseInt(text, 0, 64); err == nil {
			return lua.LNumber(i), true
		}
		n, err := strconv.ParseFloat(text, 64)
		return lua.LNumber(n), err == nil
	}

	return 0, false
}

// number is an argument that is a number.
func (r *run) number(i int) lua.LNumber {
	n, ok := r.toNumber(r.l.Get(i))
	if !ok {
		r.l.TypeError(i, lua.LTNumber)
	}
	return n
}

// int is an argument that is a position or a count.
func (r *run) int(i int) int { return integer(r.number(i)) }

// integer64 is an argument that is a whole number.
func (r *run) integer64(i int) int64 {
	n, ok := integer64(r.number(i))
	if !ok {
		r.l.ArgError(i, "is not a 64-bit integer")
	}
	return n
}

func (r *run) optInt(i, otherwise int) int {
	if r.l.Get(i) == lua.LNil {
		return otherwise
	}
	return r.int(i)
}

// string is an argument that is a string.
func (r *run) string(i int) string {
	switch v := r.l.Get(i).(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return digits(v)
	}
	r.l.TypeError(i, lua.LTString)
	return ""
}

func (r *run) optString(i int, otherwise string) string {
	if r.l.Get(i) == lua.LNil {
		return otherwise
	}
	return r.string(i)
}

// readNumber is tonumber. In a base other than ten, a text is a whole number.
func (r *run) readNumber() lua.LValue {
	v, base := r.l.CheckAny(1), r.optInt(2, 10)
	s, ok := v.(lua.LString)
	if !ok {
		if _, ok := v.(lua.LNumber); ok {
			return v
		}
		return lua.LNil
	}

	r.spend(len(s) / digitsPerStep)
	text := strings.Trim(string(s), " \n\t")
	if strings.Contains(text, ".") {
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return lua.LNumber(n)
		}
		return lua.LNil
	}

	if r.l.Get(2) == lua.LNil && len(text) > 1 && text[0] == '0' && text[1]|0x20 == 'x' {
		base, text = 16, text[2:]
	}
	if n, err := strconv.ParseInt(text, base, 64); err == nil {
		return lua.LNumber(n)
	}

	return lua.LNil
}

// numbers is the math library, without inexact functions (see calculate) and
// without random.
func (r *run) numbers() []entry {
	of := func(f func(float64) float64) lua.LGFunction {
		return func(l *lua.LState) int { l.Push(lua.LNumber(f(float64(r.number(1))))); return 1 }
	}

	best := func(better func(a, b lua.LNumber) bool) lua.LGFunction {
		return func(l *lua.LState) int {
			n := r.number(1)
			r.spend(l.GetTop() / valuesPerStep)

			for i := 2; i <= l.GetTop(); i++ {
				if other := r.number(i); better(other, n) {
					n = other
				}
			}

			l.Push(n)
			return 1
		}
	}

	fmod := func(l *lua.LState) int { l.Push(r.remainder(r.number(1), r.number(2))); return 1 }
	return []entry{
		{"abs", of(math.Abs)},
		{"ceil", of(math.Ceil)},
		{"floor", of(math.Floor)},
		{"fmod", fmod},
		{"max", best(func(a, b lua.LNumber) bool { return a > b })},
		{"min", best(func(a, b lua.LNumber) bool { return a < b })},
		{"mod", fmod},
		{"modf", func(l *lua.LState) int {
			whole, rest := math.Modf(float64(r.number(1)))
			l.Push(lua.LNumber(whole))
			l.Push(lua.LNumber(rest))
			return 2
		}},
		{"pow", func(l *lua.LState) int { l.Push(r.power(r.number(1), r.number(2))); return 1 }},
		{"sqrt", of(math.Sqrt)},
	}
}
