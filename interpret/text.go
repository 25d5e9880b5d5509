// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"fmt"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// text is the string library. The engine's own can build endless strings, and
// search for longer than anybody waits.
func (r *run) text() []entry {
	return []entry{
		{"byte", func(l *lua.LState) int {
			s := r.string(1)
			from := r.optInt(2, 1)
			i, j := span(s, from, r.optInt(3, from))
			return r.values(i+1, j, func(k int) lua.LValue { return lua.LNumber(s[k-1]) })
		}},
		{"char", func(l *lua.LState) int {
			b := make([]byte, l.GetTop())
			for i := range b {
				n := r.int(i + 1)
				if n < 0 || n > 255 {
					l.ArgError(i+1, "is not a byte")
				}
				b[i] = byte(n)
			}

			return r.push(string(b))
		}},
		{"find", func(l *lua.LState) int { return r.find(true) }},
		{"format", func(l *lua.LState) int { return r.format() }},
		{"gmatch", func(l *lua.LState) int { return r.gmatch() }},
		{"gsub", func(l *lua.LState) int { return r.gsub() }},
		{"len", func(l *lua.LState) int { l.Push(lua.LNumber(len(r.string(1)))); return 1 }},
		{"lower", func(l *lua.LState) int { return r.push(mapped(r.string(1), 'A', 'Z')) }},
		{"match", func(l *lua.LState) int { return r.find(false) }},
		{"rep", func(l *lua.LState) int {
			s, n := r.string(1), max(0, r.int(2))
			if len(s) == 0 {
				n = 0
			}
			if n > maxString {
				r.stop("a string of more than %d bytes", maxString)
			}

			r.room(len(s) * n)
			l.Push(lua.LString(strings.Repeat(s, n)))
			return 1
		}},
		{"reverse", func(l *lua.LState) int {
			s := r.string(1)
			b := make([]byte, len(s))
			for i := range b {
				b[i] = s[len(s)-1-i]
			}
			return r.push(string(b))
		}},
		{"sub", func(l *lua.LState) int {
			s := r.string(1)
			i, j := span(s, r.int(2), r.optInt(3, -1))
			l.Push(lua.LString(s[i:max(i, j)]))
			return 1
		}},
		{"upper", func(l *lua.LState) int { return r.push(mapped(r.string(1), 'a', 'z')) }},
	}
}

func (r *run) push(s string) int {
	r.room(len(s))
	r.l.Push(lua.LString(s))
	return 1
}

// mapped is s with the ASCII letters of one case mapped to the other.
func mapped(s string, first, last byte) string {
	b := []byte(s)
	for i, c := range b {
		if c >= first && c <= last {
			b[i] = c ^ 0x20
		}
	}
	return string(b)
}

// span turns two positions in Lua's sense, from one, or from the end if
// negative, into the bounds of a slice; it is empty if the second is not after
// the first.
func span(s string, from, to int) (i, j int) {
	if from < 0 {
		from = max(len(s)+from+1, 1)
	}
	if to < 0 {
		to = len(s) + to + 1
	}

	i, j = max(from, 1)-1, min(to, len(s))
	if i >= j {
		i = min(i, len(s))
		return i, i
	}

	return i, j
}

// format is string.format, directive by directive.
func (r *run) format() int {
	l := r.l
	pattern := r.string(1)
	r.spend(len(pattern) / bytesPerStep)
	var b strings.Builder
	write := func(s string) {
		r.room(len(s))
		b.WriteString(s)
		if b.Len() > maxString {
			r.stop("a string of more than %d bytes", maxString)
		}
	}

	arg := 1
	for {
		r.spend(1)
		plain, rest, more := strings.Cut(pattern, "%")
		write(plain)
		if !more {
			break
		}

		if strings.HasPrefix(rest, "%") {
			write("%")
			pattern = rest[1:]
			continue
		}

		n := strings.IndexFunc(rest[:min(len(rest), maxDirective)], func(c rune) bool { return !strings.ContainsRune("-+ #0123456789.", c) })
		if n < 0 || !bounded(rest[:n]) {
			l.RaiseError("invalid directive in 'format'")
		}

		arg++
		flags, verb := "%"+rest[:n], rest[n]
		pattern = rest[n+1:]

		switch verb {
		case 'd', 'i':
			write(fmt.Sprintf(flags+"d", r.integer64(arg)))
		case 'u':
			write(fmt.Sprintf(flags+"d", uint64(r.integer64(arg))))
		case 'c':
			write(fmt.Sprintf(flags+"s", string([]byte{byte(r.int(arg))})))
		case 'x', 'X', 'o':
			write(fmt.Sprintf(flags+string(verb), uint64(r.integer64(arg))))
		case 'e', 'E', 'f', 'g', 'G':
			r.spend(stepsPerFraction)
			write(fmt.Sprintf(flags+string(verb), float64(r.number(arg))))
		case 'q':
			write(strconv.Quote(r.string(arg)))
		case 's':
			l.CheckAny(arg)
			write(fmt.Sprintf(flags+"s", r.toString(l.Get(arg))))
		default:
			l.RaiseError("invalid directive in 'format'")
		}
	}

	l.Push(lua.LString(b.String()))
	return 1
}

// maxDirective limits the length of a format's directive.
const maxDirective = 16

// bounded reports whether width and precision have at most two digits.
func bounded(flags string) bool {
	run := 0
	for _, c := range strings.TrimLeft(flags, "-+ #0") {
		if run++; c == '.' {
			run = 0
		}
		if run > 2 {
			return false
		}
	}

	return true
}

// find is string.find or string.match.
func (r *run) find(positions bool) int {
	l := r.l
	s, pattern := r.string(1), r.string(2)
	from := r.optInt(3, 1)
	if from < 0 {
		from = max(len(s)+from+1, 1)
	}

	from = max(from, 1) - 1
	if from > len(s) {
		l.Push(lua.LNil)
		return 1
	}

	if positions && lua.LVAsBool(l.Get(4)) {
		r.spend(len(s) / bytesPerStep)
		at := strings.Index(s[from:], pattern)
		if at < 0 {
			l.Push(lua.LNil)
			return 1
		}

		l.Push(lua.LNumber(from + at + 1))
		l.Push(lua.LNumber(from + at + len(pattern)))
		return 2
	}

	m := r.matcher(s, pattern)
	start, end := m.search(from)
	if start < 0 {
		l.Push(lua.LNil)
		return 1
	}

	if !positions {
		return m.pushCaptures(start, end)
	}

	l.Push(lua.LNumber(start + 1))
	l.Push(lua.LNumber(end))
	if len(m.captures) == 0 {
		return 2
	}

	return 2 + m.pushCaptures(start, end)
}

func (r *run) gmatch() int {
	l := r.l
	m := r.matcher(r.string(1), r.string(2))
	at := 0
	l.Push(l.NewFunction(func(*lua.LState) int {
		if at > len(m.src) {
			return 0
		}

		start, end := m.search(at)
		if start < 0 {
			at = len(m.src) + 1
			return 0
		}

		at = end
		if end == start {
			at++
		}

		return m.pushCaptures(start, end)
	}))
	return 1
}

func (r *run) gsub() int {
	l := r.l
	s, pattern, with := r.string(1), r.string(2), l.Get(3)
	l.CheckTypes(3, lua.LTString, lua.LTNumber, lua.LTTable, lua.LTFunction)
	limit := r.optInt(4, len(s)+1)
	m := r.matcher(s, pattern)
	var b strings.Builder
	write := func(s string) {
		r.room(len(s))
		b.WriteString(s)
		if b.Len() > maxString {
			r.stop("a string of more than %d bytes", maxString)
		}
	}

	at, count := 0, 0
	for count < limit && at <= len(s) {
		start, end := m.search(at)
		if start < 0 {
			break
		}

		count++
		write(s[at:start])
		write(m.replacement(with, start, end))
		at = end
		if end == start {
			if end < len(s) {
				write(s[end : end+1])
			}
			at++
		}

		if m.anchored {
			break
		}
	}

	if at < len(s) {
		write(s[at:])
	}

	l.Push(lua.LString(b.String()))
	l.Push(lua.LNumber(count))
	return 2
}

// replacement is what gsub writes for a match.
func (m *matcher) replacement(with lua.LValue, start, end int) string {
	l := m.run.l
	whole := m.src[start:end]
	var value lua.LValue
	switch with := with.(type) {
	case *lua.LTable:
		value = l.GetTable(with, m.capture(0, start, end))
	case *lua.LFunction:
		l.Push(with)
		n := m.pushCaptures(start, end)
		l.Call(n, 1)
		value = l.Get(-1)
		l.Pop(1)
	default:
		return m.template(plain(with), start, end)
	}

	switch value := value.(type) {
	case lua.LString, lua.LNumber:
		return plain(value)
	case lua.LBool, *lua.LNilType:
		if !lua.LVAsBool(value) {
			return whole
		}
	}

	l.RaiseError("invalid replacement value (a %s)", value.Type())
	return ""
}

// template expands %0 to %9.
func (m *matcher) template(text string, start, end int) string {
	if !strings.Contains(text, "%") {
		return text
	}

	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}

		i++
		switch c := text[i]; {
		case c == '0':
			m.run.room(end - start)
			b.WriteString(m.src[start:end])
		case c >= '1' && c <= '9':
			part := plain(m.capture(int(c-'1'), start, end))
			m.run.room(len(part))
			b.WriteString(part)
		default:
			b.WriteByte(c)
		}
	}

	return b.String()
}
