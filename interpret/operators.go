// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// operators are the functions that replace operators (rewrite.go), in the order
// of their names' definition.
func (r *run) operators() []entry {
	return []entry{
		{hiddenConcat, func(l *lua.LState) int { l.Push(r.concat()); return 1 }},
		{hiddenStore, func(*lua.LState) int { r.store(); return 0 }},
		{hiddenLength, func(l *lua.LState) int { l.Push(r.lengthOf(l.Get(1))); return 1 }},
		{hiddenTable, func(l *lua.LState) int { r.constructed(); l.SetTop(1); return 1 }},
		{hiddenIndex, func(l *lua.LState) int { r.passes(l.Get(2)); l.Push(l.GetTable(l.Get(1), l.Get(2))); return 1 }},
		{hiddenKey, func(l *lua.LState) int { r.passes(l.Get(1)); return 1 }},
		{hiddenEqual, func(l *lua.LState) int { l.Push(lua.LBool(r.equal(l.Get(1), l.Get(2)))); return 1 }},
		{hiddenLess, func(l *lua.LState) int { l.Push(lua.LBool(r.compare(l.Get(3).String(), l.Get(1), l.Get(2)))); return 1 }},
		{hiddenArith, func(l *lua.LState) int { l.Push(r.arith(l.Get(3).String(), l.Get(1), l.Get(2))); return 1 }},
		{hiddenMinus, func(l *lua.LState) int { l.Push(r.minus(l.Get(1))); return 1 }},
		{hiddenValues, func(l *lua.LState) int { r.spend(l.GetTop() / valuesPerStep); return l.GetTop() }},
	}
}

// passes charges for a walk through a string.
func (r *run) passes(v lua.LValue) {
	if s, ok := v.(lua.LString); ok {
		r.spend(len(s) / bytesPerStep)
	}
}

func (r *run) equal(a, b lua.LValue) bool {
	x, ok := a.(lua.LString)
	if y, both := b.(lua.LString); ok && both {
		if len(x) != len(y) {
			return false
		}
		r.passes(x)
		return x == y
	}

	return r.l.Equal(a, b)
}

// compare is one of the operators "<", "<=", ">" and ">=".
func (r *run) compare(op string, a, b lua.LValue) bool {
	if op == ">" || op == ">=" {
		a, b = b, a
	}
	if op == "<" || op == ">" {
		return r.less(a, b)
	}

	x, ok := a.(lua.LNumber)
	if y, both := b.(lua.LNumber); ok && both {
		return x <= y
	}

	if s, ok := a.(lua.LString); ok && b.Type() == lua.LTString {
		r.passes(s)
		return s <= b.(lua.LString)
	}

	if le, same := r.both(a, b, "__le"); same {
		return lua.LVAsBool(r.calls(le, a, b))
	}

	return !r.less(b, a)
}

func (r *run) less(a, b lua.LValue) bool {
	x, ok := a.(lua.LNumber)
	if y, both := b.(lua.LNumber); ok && both {
		return x < y
	}

	if s, ok := a.(lua.LString); ok && b.Type() == lua.LTString {
		r.passes(s)
		return s < b.(lua.LString)
	}

	lt, same := r.both(a, b, "__lt")
	if !same {
		r.l.RaiseError("attempt to compare %s with %s", a.Type(), b.Type())
	}

	return lua.LVAsBool(r.calls(lt, a, b))
}

// both is the metamethod that two tables share for an operator.
func (r *run) both(a, b lua.LValue, event string) (lua.LValue, bool) {
	if a.Type() != b.Type() {
		return nil, false
	}
	fn := r.l.GetMetaField(a, event)
	_, ok := fn.(*lua.LFunction)
	return fn, ok && fn == r.l.GetMetaField(b, event)
}

func (r *run) calls(fn lua.LValue, args ...lua.LValue) lua.LValue {
	r.l.Push(fn)
	for _, v := range args {
		r.l.Push(v)
	}
	r.l.Call(len(args), 1)
	v := r.l.Get(-1)
	r.l.Pop(1)
	return v
}

var events = map[string]string{"+": "__add", "-": "__sub", "*": "__mul", "/": "__div", "%": "__mod", "^": "__pow"}

// arith is an arithmetic operator on any two values.
func (r *run) arith(op string, a, b lua.LValue) lua.LValue {
	x, ok := a.(lua.LNumber)
	if y, both := b.(lua.LNumber); ok && both {
		return r.calculate(op, x, y)
	}

	event := events[op]
	for _, v := range []lua.LValue{a, b} {
		if fn, ok := r.l.GetMetaField(v, event).(*lua.LFunction); ok {
			return r.calls(fn, a, b)
		}
	}

	x, isX := r.toNumber(a)
	y, isY := r.toNumber(b)
	if !isX || !isY {
		r.l.RaiseError("cannot perform %s operation between %s and %s", event[2:], a.Type(), b.Type())
	}

	return r.calculate(op, x, y)
}

func (r *run) minus(v lua.LValue) lua.LValue {
	if n, ok := v.(lua.LNumber); ok {
		return -n
	}
	if fn, ok := r.l.GetMetaField(v, "__unm").(*lua.LFunction); ok {
		return r.calls(fn, v)
	}

	n, ok := r.toNumber(v)
	if !ok {
		r.l.RaiseError("attempt to negate a %s", v.Type())
	}

	return -n
}

// calculate only has operations whose result IEEE 754 defines to the last bit:
// a script must mean the same on every processor.
func (r *run) calculate(op string, x, y lua.LNumber) lua.LNumber {
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "/":
		return x / y
	case "%":
		rest := r.remainder(x, y)
		if y > 0 && rest < 0 || y < 0 && rest > 0 {
			rest += y
		}
		return rest
	}

	return r.power(x, y)
}

// remainder takes longer the more digits the quotient has.
func (r *run) remainder(x, y lua.LNumber) lua.LNumber {
	_, p := math.Frexp(float64(x))
	_, q := math.Frexp(float64(y))
	r.spend(max(0, p-q) / digitsPerStep)
	return lua.LNumber(math.Mod(float64(x), float64(y)))
}

// power multiplies. Fractional exponents are not supported: processors round
// their results differently.
func (r *run) power(x, y lua.LNumber) lua.LNumber {
	n := math.Abs(float64(y))
	if n != math.Trunc(n) || n > whole {
		r.l.RaiseError("the exponent is not a whole number")
	}

	product, square := 1.0, float64(x)
	for left := uint64(n); left > 0; left >>= 1 {
		if left&1 == 1 {
			product = float64(product * square)
		}
		square = float64(square * square)
	}

	if y < 0 {
		product = 1 / product
	}

	return lua.LNumber(product)
}
