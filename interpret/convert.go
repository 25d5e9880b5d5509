// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"errors"
	"maps"
	"math"
	"slices"

	lua "github.com/yuin/gopher-lua"
)

// argument is an object as an argument of a script. Of a Secret, and of what SOPS has
// encrypted, no error is repeated, whoever words it (decision 48).
func (r *run) argument(object map[string]any) lua.LValue {
	_, sops := object["sops"]
	r.secret = r.secret || object["kind"] == "Secret" || sops
	return r.toLua(object)
}

// toLua converts a value, with map keys in order, so that walking a table
// depends only on its content.
func (r *run) toLua(v any) lua.LValue {
	r.charge(1)
	switch v := v.(type) {
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case []any:
		t := r.l.CreateTable(len(v), 0)
		for i, item := range v {
			if value := r.toLua(item); value != lua.LNil {
				t.RawSetInt(i+1, value)
			}
		}
		r.filled(t, len(v), len(v))
		return t
	case map[string]any:
		t := r.l.CreateTable(0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			r.charge(len(key) / bytesPerStep)
			if value := r.toLua(v[key]); value != lua.LNil {
				t.RawSetString(key, value)
			}
		}
		r.filled(t, len(v), 0)
		return t
	}

	return lua.LNil
}

func (r *run) filled(t *lua.LTable, stores, high int) {
	if stores > stepsPerTable {
		g := r.ledger(t)
		g.stores, g.high = stores, high
	} else if high > 0 {
		r.ledger(t).high = high
	}
}

var (
	errDeep   = errors.New("nested too deeply, or cyclic")
	errMixed  = errors.New("a table is neither a list nor a map")
	errNumber = errors.New("a number is infinite, or a whole number too large to be exact")
	errKind   = errors.New("contains a function")
)

// whole is the limit below which every whole number is an exact Lua number.
const whole = 1 << 53

// fromLua converts a script's result. was is the previous value at the same
// place, which is kept if the script's value equals it.
func (r *run) fromLua(v lua.LValue, was any) (any, error) { return r.value(v, was, 0) }

func (r *run) value(v lua.LValue, was any, depth int) (any, error) {
	if r.charge(1); r.stopped != "" {
		return nil, errors.New(r.stopped)
	}
	if depth > maxDepth {
		return nil, errDeep
	}

	switch v := v.(type) {
	case *lua.LNilType:
		return nil, nil
	case lua.LBool:
		return bool(v), nil
	case lua.LString:
		return string(v), nil
	case lua.LNumber:
		return number(float64(v), was)
	case *lua.LTable:
		return r.tableValue(v, was, depth)
	}

	return nil, errKind
}

func number(n float64, was any) (any, error) {
	switch was := was.(type) {
	case int64:
		if float64(was) == n {
			return was, nil
		}
	case float64:
		if was == n {
			return was, nil
		}
	}

	switch {
	case n != math.Trunc(n):
		if math.IsNaN(n) {
			return nil, errNumber
		}
		return n, nil
	case math.Abs(n) <= whole:
		return int64(n), nil
	}

	return nil, errNumber
}

func (r *run) tableValue(t *lua.LTable, was any, depth int) (any, error) {
	first, _ := t.Next(lua.LNil)
	_, wasMap := was.(map[string]any)
	_, wasList := was.([]any)
	_, numbered := first.(lua.LNumber)
	if numbered || first == lua.LNil && !wasMap || wasList && first == lua.LNil {
		return r.list(t, was, depth)
	}

	before, _ := was.(map[string]any)
	m := map[string]any{}
	for key, value := t.Next(lua.LNil); key != lua.LNil; key, value = t.Next(key) {
		name, ok := key.(lua.LString)
		if !ok {
			return nil, errMixed
		}

		r.charge(len(name) / bytesPerStep)
		out, err := r.value(value, before[string(name)], depth+1)
		if err != nil {
			return nil, err
		}

		m[string(name)] = out
	}

	for key, value := range before {
		if value == nil && m[key] == nil {
			m[key] = nil // Lua has no fields without a value
		}
	}

	return m, nil
}

func (r *run) list(t *lua.LTable, was any, depth int) (any, error) {
	before, _ := was.([]any)
	n := t.MaxN()
	list := make([]any, 0, n)
	for i := range n {
		var old any
		if i < len(before) {
			old = before[i]
		}

		out, err := r.value(t.RawGetInt(i+1), old, depth+1)
		if err != nil {
			return nil, err
		}

		list = append(list, out)
	}

	for key, _ := t.Next(lua.LNil); key != lua.LNil; key, _ = t.Next(key) {
		if i, ok := key.(lua.LNumber); !ok || i < 1 || i > lua.LNumber(n) || i != lua.LNumber(int(i)) {
			return nil, errMixed
		}
	}

	if len(before) > n && !slices.ContainsFunc(before[n:], func(v any) bool { return v != nil }) {
		list = append(list, before[n:]...)
	}

	return list, nil
}
