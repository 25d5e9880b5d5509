// SPDX-License-Identifier: Apache-2.0

package interpret

import lua "github.com/yuin/gopher-lua"

const (
	maxPattern  = 512 // bytes
	maxCaptures = 32
)

// matcher matches a Lua pattern against a string, and counts steps:
// backtracking can take much longer than the string is long.
type matcher struct {
	run          *run
	src, pattern string
	anchored     bool
	captures     []capture
}

// capture is a part of the string, or a position in it.
type capture struct {
	start, length int
}

const (
	unclosed = -1
	place    = -2
)

func (r *run) matcher(src, pattern string) *matcher {
	if len(pattern) > maxPattern {
		r.l.RaiseError("a pattern of more than %d bytes", maxPattern)
	}
	m := &matcher{run: r, src: src, pattern: pattern}
	if pattern != "" && pattern[0] == '^' {
		m.anchored, m.pattern = true, pattern[1:]
	}
	return m
}

// search finds the first match at or after a position.
func (m *matcher) search(from int) (start, end int) {
	for start = from; start <= len(m.src); start++ {
		m.captures = m.captures[:0]
		if end = m.match(start, 0); end >= 0 {
			return start, end
		}
		if m.anchored {
			break
		}
	}

	return -1, -1
}

// match returns the end of a match of the rest of the pattern, -1 for none.
func (m *matcher) match(s, p int) int {
	for {
		m.run.spend(1)
		if p == len(m.pattern) {
			return s
		}

		switch c := m.pattern[p]; {
		case c == '(' && p+1 < len(m.pattern) && m.pattern[p+1] == ')':
			return m.with(capture{s, place}, s, p+2)
		case c == '(':
			return m.with(capture{s, unclosed}, s, p+1)
		case c == ')':
			return m.close(s, p+1)
		case c == '$' && p+1 == len(m.pattern):
			if s == len(m.src) {
				return s
			}
			return -1
		case c == '%' && p+1 < len(m.pattern) && m.pattern[p+1] == 'b':
			if s = m.balanced(s, p+2); s < 0 {
				return -1
			}
			p += 4
			continue
		case c == '%' && p+1 < len(m.pattern) && isDigit(m.pattern[p+1]):
			part := m.closed(int(m.pattern[p+1]) - '1')
			m.run.spend(len(part) / bytesPerStep)
			if len(m.src)-s < len(part) || m.src[s:s+len(part)] != part {
				return -1
			}
			s, p = s+len(part), p+2
			continue
		}

		next := m.classEnd(p)
		if next < len(m.pattern) {
			switch m.pattern[next] {
			case '?':
				if m.one(s, p, next) {
					if end := m.match(s+1, next+1); end >= 0 {
						return end
					}
				}
				p = next + 1
				continue
			case '*':
				return m.longest(s, p, next, 0)
			case '+':
				return m.longest(s, p, next, 1)
			case '-':
				return m.shortest(s, p, next)
			}
		}

		if !m.one(s, p, next) {
			return -1
		}

		s, p = s+1, next
	}
}

func (m *matcher) with(c capture, s, p int) int {
	if len(m.captures) == maxCaptures {
		m.run.l.RaiseError("too many captures")
	}

	m.captures = append(m.captures, c)
	n := len(m.captures)
	end := m.match(s, p)
	if end < 0 {
		m.captures = m.captures[:n-1]
	}

	return end
}

func (m *matcher) close(s, p int) int {
	for i := len(m.captures) - 1; i >= 0; i-- {
		if m.captures[i].length != unclosed {
			continue
		}

		m.captures[i].length = s - m.captures[i].start
		end := m.match(s, p)
		if end < 0 {
			m.captures[i].length = unclosed
		}

		return end
	}

	m.run.l.RaiseError("invalid pattern capture")
	return -1
}

func (m *matcher) closed(i int) string {
	if i < 0 || i >= len(m.captures) || m.captures[i].length == unclosed {
		m.run.l.RaiseError("invalid capture index")
	}
	c := m.captures[i]
	return m.src[c.start : c.start+max(c.length, 0)]
}

// balanced skips a text from a delimiter to its closing one.
func (m *matcher) balanced(s, p int) int {
	if p+1 >= len(m.pattern) {
		m.run.l.RaiseError("missing arguments to '%%b'")
	}
	if s >= len(m.src) || m.src[s] != m.pattern[p] {
		return -1
	}

	depth := 0
	for i := s; i < len(m.src); i++ {
		m.run.spend(1)
		switch m.src[i] {
		case m.pattern[p+1]:
			if depth--; depth == 0 || m.pattern[p] == m.pattern[p+1] && i > s {
				return i + 1
			}
			if m.pattern[p] == m.pattern[p+1] {
				depth = 1
			}
		case m.pattern[p]:
			depth++
		}
	}

	return -1
}

// longest tries the longest run of a class first.
func (m *matcher) longest(s, p, next, least int) int {
	n := 0
	for m.one(s+n, p, next) {
		m.run.spend(1)
		n++
	}

	for ; n >= least; n-- {
		if end := m.match(s+n, next+1); end >= 0 {
			return end
		}
	}

	return -1
}

// shortest tries the shortest run first.
func (m *matcher) shortest(s, p, next int) int {
	for {
		if end := m.match(s, next+1); end >= 0 {
			return end
		}
		if !m.one(s, p, next) {
			return -1
		}
		s++
	}
}

// classEnd is the end of the class that starts at p.
func (m *matcher) classEnd(p int) int {
	switch m.pattern[p] {
	case '%':
		if p+1 == len(m.pattern) {
			m.run.l.RaiseError("malformed pattern (ends with '%%')")
		}
		return p + 2
	case '[':
		i := p + 1
		if i < len(m.pattern) && m.pattern[i] == '^' {
			i++
		}
		for first := true; ; first = false {
			switch {
			case i >= len(m.pattern):
				m.run.l.RaiseError("malformed pattern (missing ']')")
			case m.pattern[i] == ']' && !first:
				return i + 1
			case m.pattern[i] == '%':
				i++
			}
			i++
		}
	}

	return p + 1
}

// one reports whether the character at s is in the class.
func (m *matcher) one(s, p, end int) bool {
	if s >= len(m.src) {
		return false
	}

	c := m.src[s]
	switch m.pattern[p] {
	case '.':
		return true
	case '%':
		return isClass(c, m.pattern[p+1])
	case '[':
		m.run.spend((end - p) / bytesPerStep)
		return m.inSet(c, p+1, end-1)
	}

	return c == m.pattern[p]
}

func (m *matcher) inSet(c byte, p, end int) bool {
	in := true
	if m.pattern[p] == '^' {
		in = false
		p++
	}

	for ; p < end; p++ {
		switch {
		case m.pattern[p] == '%' && p+1 < end:
			p++
			if isClass(c, m.pattern[p]) {
				return in
			}
		case p+2 < end && m.pattern[p+1] == '-':
			if m.pattern[p] <= c && c <= m.pattern[p+2] {
				return in
			}
			p += 2
		case m.pattern[p] == c:
			return in
		}
	}

	return !in
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isClass reports whether a character is in the class of a letter; a capital
// letter is the complement.
func isClass(c, class byte) bool {
	lower, upper := c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z'
	printed := c > ' ' && c < 0x7f
	var in bool
	switch class | 0x20 {
	case 'a':
		in = lower || upper
	case 'c':
		in = c < ' ' || c == 0x7f
	case 'd':
		in = isDigit(c)
	case 'l':
		in = lower
	case 'p':
		in = printed && !lower && !upper && !isDigit(c)
	case 's':
		in = c == ' ' || c >= '\t' && c <= '\r'
	case 'u':
		in = upper
	case 'w':
		in = lower || upper || isDigit(c)
	case 'x':
		in = isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f'
	case 'z':
		in = c == 0
	default:
		return c == class
	}

	return in == (class >= 'a')
}

// capture is a capture as a value; the whole match if the pattern has none.
func (m *matcher) capture(i, start, end int) lua.LValue {
	if i == 0 && len(m.captures) == 0 {
		return lua.LString(m.src[start:end])
	}
	if i < len(m.captures) && m.captures[i].length == place {
		return lua.LNumber(m.captures[i].start + 1)
	}
	return lua.LString(m.closed(i))
}

func (m *matcher) pushCaptures(start, end int) int {
	n := max(1, len(m.captures))
	for i := range n {
		m.run.l.Push(m.capture(i, start, end))
	}
	return n
}
