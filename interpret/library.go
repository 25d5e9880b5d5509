// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"math"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// entry is a function of a library. Libraries are lists, so that walking one
// has a defined order.
type entry struct {
	name string
	fn   lua.LGFunction
}

// openLibraries sets a script's globals: the pure base functions, table, string
// and math without random, and kube.
func (r *run) openLibraries() {
	global := r.l.G.Global
	r.open(global, borrowedBase)
	r.open(global, r.base())

	for _, e := range borrowedCatch {
		r.open(global, []entry{{e.name, r.catch(e.fn)}})
	}

	global.RawSetString("_G", global)
	global.RawSetString("_VERSION", lua.LString(lua.LuaVersion))

	kube := r.library(r.kube())
	text := r.library(r.text())
	text.RawSetString("__index", text)
	r.l.SetMetatable(lua.LString(""), text)
	numbers := r.library(r.numbers())
	numbers.RawSetString("huge", lua.LNumber(math.Inf(1)))
	numbers.RawSetString("pi", lua.LNumber(math.Pi))
	global.RawSetString("table", r.library(r.table()))
	global.RawSetString("string", text)
	global.RawSetString("math", numbers)
	global.RawSetString("kube", kube)
	global.RawSetString("require", r.l.NewFunction(func(l *lua.LState) int {
		if r.string(1) != "kube" {
			l.RaiseError("kube is the only module")
		}
		l.Push(kube)
		return 1
	}))
}

func (r *run) open(into *lua.LTable, entries []entry) {
	for _, e := range entries {
		into.RawSetString(e.name, r.l.NewFunction(e.fn))
	}
}

func (r *run) library(entries []entry) *lua.LTable {
	t := r.l.NewTable()
	r.open(t, entries)
	return t
}

// The engine's own functions that are pure and whose cost one instruction
// covers.
var (
	borrowedBase  = borrow(lua.OpenBase, "getmetatable", "type")
	borrowedCatch = borrow(lua.OpenBase, "pcall", "xpcall")
)

func borrow(open lua.LGFunction, names ...string) []entry {
	var all []entry
	for _, name := range names {
		all = append(all, entry{name, field(open, name).(*lua.LFunction).GFunction})
	}
	return all
}

// field is a field of one of the engine's libraries.
func field(open lua.LGFunction, name string) lua.LValue {
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	l.Push(l.NewFunction(open))
	l.Call(0, 1)
	return l.CheckTable(1).RawGetString(name)
}

// base are the functions that every script has.
func (r *run) base() []entry { return slices.Concat(r.baseControl(), r.baseTables(), r.baseValues()) }

func (r *run) baseControl() []entry {
	return []entry{
		{"assert", func(l *lua.LState) int {
			if l.ToBool(1) {
				return l.GetTop()
			}
			l.CheckAny(1)
			r.raise(l.Get(2), lua.LString("assertion failed!"))
			return 0
		}},
		{"error", func(l *lua.LState) int {
			r.passes(l.Get(1))
			r.note(l.Get(1))
			l.Error(l.Get(1), r.optInt(2, 1))
			return 0
		}},
	}
}

func (r *run) baseTables() []entry {
	return []entry{
		{"ipairs", func(l *lua.LState) int {
			t, i := l.CheckTable(1), 0
			l.Push(l.NewFunction(func(l *lua.LState) int {
				i++
				if v := t.RawGetInt(i); v != lua.LNil {
					l.Push(lua.LNumber(i))
					l.Push(v)
					return 2
				}
				return 0
			}))
			return 1
		}},
		{"pairs", func(l *lua.LState) int {
			t := l.CheckTable(1)
			r.walked(t)
			var at lua.LValue = lua.LNil
			l.Push(l.NewFunction(func(l *lua.LState) int {
				key, value := t.Next(at)
				if key == lua.LNil {
					return 0
				}

				at = key
				r.passes(key)
				l.Push(key)
				l.Push(value)
				return 2
			}))
			return 1
		}},
		{"next", func(l *lua.LState) int {
			t := l.CheckTable(1)
			r.walked(t)
			var at lua.LValue = lua.LNil
			if l.GetTop() > 1 {
				at = l.Get(2)
			}

			r.passes(at)
			key, value := t.Next(at)
			l.Push(key)
			if key == lua.LNil {
				return 1
			}

			l.Push(value)
			return 2
		}},
		{"rawequal", func(l *lua.LState) int {
			a, b := l.CheckAny(1), l.CheckAny(2)
			if a.Type() == lua.LTString {
				r.passes(a)
			}
			l.Push(lua.LBool(a == b))
			return 1
		}},
		{"rawget", func(l *lua.LState) int {
			key := l.CheckAny(2)
			r.passes(key)
			l.Push(l.CheckTable(1).RawGet(key))
			return 1
		}},
		{"rawset", func(l *lua.LState) int {
			t, key := l.CheckTable(1), l.CheckAny(2)
			r.checkKey(key)
			r.stores(t, key)
			r.lookups(key, l.CheckAny(3))
			t.RawSet(key, l.CheckAny(3))
			l.SetTop(1)
			return 1
		}},
	}
}

func (r *run) baseValues() []entry {
	return []entry{
		{"select", func(l *lua.LState) int {
			n := l.GetTop() - 1
			if l.Get(1) == lua.LString("#") {
				l.Push(lua.LNumber(n))
				return 1
			}

			i := r.int(1)
			if i < 0 {
				i += n + 1
			}
			if i < 1 {
				l.ArgError(1, "index out of range")
			}

			return max(0, n-i+1)
		}},
		{"setmetatable", func(l *lua.LState) int {
			t := l.CheckTable(1)
			l.CheckTypes(2, lua.LTNil, lua.LTTable)

			if l.GetMetaField(t, "__metatable") != lua.LNil {
				l.RaiseError("cannot change a protected metatable")
			}

			if meta, ok := l.Get(2).(*lua.LTable); ok {
				for _, key := range []lua.LString{"__index", "__newindex"} {
					r.lookups(key, meta.RawGet(key))
				}
			}

			l.SetMetatable(t, l.Get(2))
			l.SetTop(1)
			return 1
		}},
		{"tonumber", func(l *lua.LState) int { l.Push(r.readNumber()); return 1 }},
		{"tostring", func(l *lua.LState) int {
			l.CheckAny(1)
			l.Push(lua.LString(r.toString(l.Get(1))))
			return 1
		}},
		{"unpack", func(l *lua.LState) int {
			t := l.CheckTable(1)
			from := r.optInt(2, 1)
			var to int
			if l.Get(3) == lua.LNil {
				to = r.length(t)
			} else {
				to = r.int(3)
			}

			return r.values(from, to, t.RawGetInt)
		}},
	}
}

// values returns part of a list from a library function.
func (r *run) values(from, to int, at func(int) lua.LValue) int {
	if to < from {
		return 0
	}

	if n := to - from; n < 0 || n >= maxValues {
		r.stop("a function returns more than %d values", maxValues)
	}

	r.spend(to - from)
	for i := from; i <= to; i++ {
		r.l.Push(at(i))
	}

	return to - from + 1
}

// catch is pcall or xpcall with a charge for a caught error: unwinding a deep
// stack takes a while.
func (r *run) catch(protected lua.LGFunction) lua.LGFunction {
	return func(l *lua.LState) int {
		n := protected(l)
		if n > 0 && l.Get(-n) == lua.LFalse {
			r.spend(stepsPerError)
		}
		return n
	}
}

// note records that the script composed this text, unless it is a literal of
// the script.
func (r *run) note(v lua.LValue) {
	if s, ok := v.(lua.LString); ok && !r.script.literals[string(s)] {
		r.raised[string(s)] = true
		if at := position.FindString(s.String()[:min(len(s), short)]); at != "" {
			r.raised[s.String()[len(at):]] = true
		}
	}
}

func (r *run) raise(v, otherwise lua.LValue) {
	if v == lua.LNil {
		v = otherwise
	} else {
		r.passes(v)
		r.note(v)
	}
	r.l.Error(v, 1)
}

// toString can distinguish a table from a function, but not from another table:
// a script must not depend on memory addresses.
func (r *run) toString(v lua.LValue) string {
	if fn, ok := r.l.GetMetaField(v, "__tostring").(*lua.LFunction); ok {
		r.l.Push(fn)
		r.l.Push(v)
		r.l.Call(1, 1)
		s := r.l.Get(-1)
		r.l.Pop(1)

		if _, ok := s.(lua.LString); !ok {
			r.l.RaiseError("'tostring' must return a string")
		}

		return s.String()
	}

	switch v.(type) {
	case lua.LString, lua.LNumber, lua.LBool, *lua.LNilType:
		return plain(v)
	}

	return v.Type().String()
}

// concat is the operator "..", from the last operand to the first.
func (r *run) concat() lua.LValue {
	l := r.l
	joined := l.Get(l.GetTop())
	for i := l.GetTop() - 1; i > 0; i-- {
		left := l.Get(i)
		if lua.LVCanConvToString(left) && lua.LVCanConvToString(joined) {
			a, b := plain(left), plain(joined)
			r.room(len(a) + len(b))
			joined = lua.LString(a + b)
			continue
		}

		op := l.GetMetaField(left, "__concat")
		if op == lua.LNil {
			op = l.GetMetaField(joined, "__concat")
		}
		if op == lua.LNil {
			l.RaiseError("attempt to concatenate a %s and a %s", left.Type(), joined.Type())
		}

		joined = r.calls(op, left, joined)
	}

	return joined
}

// store is an assignment to a field.
func (r *run) store() {
	object, key, value := r.l.Get(1), r.l.Get(2), r.l.Get(3)
	if t, ok := object.(*lua.LTable); ok {
		r.checkKey(key)
		r.lookups(key, value)
		if t.Metatable == lua.LNil {
			r.stores(t, key)
			t.RawSet(key, value)
			return
		}
	}

	// Metatables may lead to other tables. They are followed as Lua does.
	r.passes(key)
	for range lua.MaxTableGetLoop {
		t, ok := object.(*lua.LTable)
		if ok && t.RawGet(key) != lua.LNil {
			break
		}

		next := r.l.GetMetaField(object, "__newindex")
		if next == lua.LNil {
			if !ok {
				r.l.RaiseError("attempt to index a %s", object.Type())
			}
			break
		}

		if fn, ok := next.(*lua.LFunction); ok {
			for _, v := range []lua.LValue{fn, object, key, value} {
				r.l.Push(v)
			}
			r.l.Call(3, 0)
			return
		}

		object = next
	}

	t, ok := object.(*lua.LTable)
	if !ok {
		r.l.RaiseError("too many metatables")
	}

	r.checkKey(key)
	r.stores(t, key)
	t.RawSet(key, value)
}

// lookups records a table that a metatable uses for lookups: one instruction
// can go through all of them.
func (r *run) lookups(key, value lua.LValue) {
	t, ok := value.(*lua.LTable)
	if !ok || key != lua.LString("__index") && key != lua.LString("__newindex") {
		return
	}
	r.lookedUp[t] = true
	if len(r.lookedUp) > maxLookedUp {
		r.stop("more than %d tables in metatable lookups", maxLookedUp)
	}
}

func (r *run) checkKey(key lua.LValue) {
	if n, ok := key.(lua.LNumber); key == lua.LNil || ok && n != n {
		r.l.RaiseError("table index is nil or not a number")
	}
}

// lengthOf is the operator "#".
func (r *run) lengthOf(v lua.LValue) lua.LValue {
	switch t := v.(type) {
	case lua.LString:
		return lua.LNumber(len(t))
	case *lua.LTable:
		if r.l.GetMetaField(t, "__len") == lua.LNil {
			return lua.LNumber(r.length(t))
		}
		return lua.LNumber(r.l.ObjLen(t))
	}

	r.l.RaiseError("attempt to get length of a %s", v.Type())
	return nil
}

// constructed charges for a table constructor.
func (r *run) constructed() {
	r.spend(stepsPerTable)
	if n := r.int(2); n > stepsPerTable {
		g := r.ledger(r.l.CheckTable(1))
		g.stores, g.high = n, n
	}
}

func (r *run) table() []entry {
	return []entry{
		{"concat", func(l *lua.LState) int {
			t := l.CheckTable(1)
			sep := r.optString(2, "")
			from, to := r.optInt(3, 1), 0
			if l.Get(4) == lua.LNil {
				to = r.length(t)
			} else {
				to = r.int(4)
			}

			var b strings.Builder
			for i := from; i <= to; i++ {
				v := t.RawGetInt(i)
				if !lua.LVCanConvToString(v) {
					l.RaiseError("invalid value (%s) at index %d in table for 'concat'", v.Type(), i)
				}

				part := plain(v)
				if i < to {
					part += sep
				}

				r.spend(1)
				r.room(len(part))
				b.WriteString(part)

				if b.Len() > maxString {
					r.stop("a string of more than %d bytes", maxString)
				}
			}

			l.Push(lua.LString(b.String()))
			return 1
		}},
		{"getn", func(l *lua.LState) int { l.Push(lua.LNumber(r.length(l.CheckTable(1)))); return 1 }},
		{"insert", func(l *lua.LState) int {
			t := l.CheckTable(1)
			n := r.length(t)
			at, value := n+1, l.Get(2)
			if l.GetTop() > 2 {
				at, value = r.int(2), l.Get(3)
			}
			if l.GetTop() < 2 || at < 1 || at > n+1 {
				l.RaiseError("wrong position or number of arguments to 'insert'")
			}

			r.spend(n + 1 - at)
			r.stores(t, lua.LNumber(n+1))

			for i := n; i >= at; i-- {
				t.RawSetInt(i+1, t.RawGetInt(i))
			}

			t.RawSetInt(at, value)
			return 0
		}},
		{"maxn", func(l *lua.LState) int {
			t := l.CheckTable(1)
			r.length(t)
			l.Push(lua.LNumber(t.MaxN()))
			return 1
		}},
		{"remove", func(l *lua.LState) int {
			t := l.CheckTable(1)
			n := r.length(t)
			at := r.optInt(2, n)
			if n == 0 || at < 1 || at > n {
				l.Push(lua.LNil)
				return 1
			}

			r.spend(n - at)
			gone := t.RawGetInt(at)

			for i := at; i < n; i++ {
				t.RawSetInt(i, t.RawGetInt(i+1))
			}

			t.RawSetInt(n, lua.LNil)
			l.Push(gone)
			return 1
		}},
		{"sort", func(l *lua.LState) int {
			t := l.CheckTable(1)
			less := r.less
			if fn := l.Get(2); fn != lua.LNil {
				l.CheckFunction(2)
				less = func(a, b lua.LValue) bool { return lua.LVAsBool(r.calls(fn, a, b)) }
			}
			r.sort(t, less)
			return 0
		}},
	}
}

// sort is stable, so that the result does not depend on the algorithm.
func (r *run) sort(t *lua.LTable, less func(a, b lua.LValue) bool) {
	values := make([]lua.LValue, r.length(t))
	r.spend(len(values))

	for i := range values {
		values[i] = t.RawGetInt(i + 1)
	}

	slices.SortStableFunc(values, func(a, b lua.LValue) int {
		r.spend(1)
		switch {
		case less(a, b):
			return -1
		case less(b, a):
			return 1
		}
		return 0
	})

	for i, v := range values {
		t.RawSetInt(i+1, v)
	}
}
