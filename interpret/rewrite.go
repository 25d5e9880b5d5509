// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// Some operators do an unbounded amount of work in one instruction: they join
// or compare strings, read numbers from them, store far beyond the end of a
// list, search for its end, copy a list of values. They are compiled to calls
// of functions that count their work. These functions are locals of the script
// with names that no script can spell.
const (
	hiddenConcat = "\x00concat"
	hiddenStore  = "\x00store"
	hiddenLength = "\x00length"
	hiddenTable  = "\x00table"
	hiddenIndex  = "\x00index"
	hiddenKey    = "\x00key"
	hiddenEqual  = "\x00equal"
	hiddenLess   = "\x00less"
	hiddenArith  = "\x00arith"
	hiddenMinus  = "\x00minus"
	hiddenValues = "\x00values"
)

// maxConstants is the maximum number of different names and values in a script.
const maxConstants = 4096

// short is the maximum length of a literal whose use is free.
const short = 256

// compile also returns the string literals of the source.
func compile(function, source string) (proto *lua.FunctionProto, literals map[string]bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%s: the script crashed the Lua compiler", function)
		}
	}()

	if len(source) > maxSource {
		return nil, nil, fmt.Errorf("%s: the script has more than %d bytes", function, maxSource)
	}

	chunk, err := parse.Parse(strings.NewReader(source), function)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %s", function, strings.Join(strings.Fields(err.Error()), " "))
	}

	w := &rewriter{literals: map[string]bool{}, constants: map[string]bool{}}
	chunk = w.block(chunk)

	switch {
	case w.long:
		return nil, nil, fmt.Errorf("%s: a name of more than %d bytes", function, short)
	case len(w.constants) > maxConstants:
		return nil, nil, fmt.Errorf("%s: more than %d different names and values", function, maxConstants)
	}

	hidden := &ast.LocalAssignStmt{Exprs: []ast.Expr{&ast.Comma3Expr{}}}
	for _, e := range (*run)(nil).operators() {
		hidden.Names = append(hidden.Names, e.name)
	}

	if proto, err = lua.Compile(append([]ast.Stmt{hidden}, chunk...), function); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", function, err)
	}

	return proto, w.literals, nil
}

// hidden are the values of these locals.
func (r *run) hidden() (all []lua.LValue) {
	for _, e := range r.operators() {
		all = append(all, r.l.NewFunction(e.fn))
	}
	return all
}

type rewriter struct {
	literals  map[string]bool
	constants map[string]bool // the compiler searches all of them for each
	long      bool            // a name is too long
}

func call(at ast.PositionHolder, name string, args ...ast.Expr) *ast.FuncCallExpr {
	fn := &ast.IdentExpr{Value: name}
	c := &ast.FuncCallExpr{Func: fn, Args: args, AdjustRet: true}
	for _, n := range []ast.Expr{fn, c} {
		n.SetLine(at.Line())
		n.SetLastLine(max(at.Line(), at.LastLine()))
	}
	return c
}

func (w *rewriter) block(stmts []ast.Stmt) []ast.Stmt {
	for i, s := range stmts {
		stmts[i] = w.stmt(s)
	}
	return stmts
}

func (w *rewriter) stmt(s ast.Stmt) ast.Stmt {
	switch s := s.(type) {
	case *ast.AssignStmt:
		return w.assign(s)
	case *ast.LocalAssignStmt:
		w.exprs(s.Exprs)
	case *ast.FuncCallStmt:
		s.Expr = w.expr(s.Expr)
	case *ast.DoBlockStmt:
		w.block(s.Stmts)
	case *ast.WhileStmt:
		s.Condition = w.expr(s.Condition)
		w.block(s.Stmts)
	case *ast.RepeatStmt:
		s.Condition = w.expr(s.Condition)
		w.block(s.Stmts)
	case *ast.IfStmt:
		s.Condition = w.expr(s.Condition)
		w.block(s.Then)
		w.block(s.Else)
	case *ast.NumberForStmt:
		s.Init, s.Limit, s.Step = w.expr(s.Init), w.expr(s.Limit), w.expr(s.Step)
		w.block(s.Stmts)
	case *ast.GenericForStmt:
		w.exprs(s.Exprs)
		w.block(s.Stmts)
	case *ast.FuncDefStmt:
		// Its name is in the source, so each occurrence stores a field of a table at
		// most once.
		w.functionName(s.Name)
		w.block(s.Func.Stmts)
	case *ast.ReturnStmt:
		w.exprs(s.Exprs)
	}

	return s
}

// assign turns assignments to fields into stores. In a multiple assignment
// every value is evaluated before the first store, as in Lua; the engine itself
// gets "a, b = b, a" wrong.
func (w *rewriter) assign(s *ast.AssignStmt) ast.Stmt {
	w.exprs(s.Rhs)
	store := func(object, key, value ast.Expr) ast.Stmt {
		c := call(s.Lhs[0], hiddenStore, object, key, value)
		c.AdjustRet = false
		out := &ast.FuncCallStmt{Expr: c}
		out.SetLine(c.Line())
		out.SetLastLine(c.LastLine())
		return out
	}

	if len(s.Lhs) == 1 && len(s.Rhs) == 1 {
		field, ok := s.Lhs[0].(*ast.AttrGetExpr)
		if !ok {
			w.expr(s.Lhs[0])
			return s
		}
		return store(w.expr(field.Object), w.expr(field.Key), s.Rhs[0])
	}

	line := func(n ast.PositionHolder) {
		n.SetLine(s.Lhs[0].Line())
		n.SetLastLine(max(s.Lhs[0].Line(), s.Lhs[0].LastLine()))
	}
	ident := func(name string, i int) *ast.IdentExpr {
		e := &ast.IdentExpr{Value: fmt.Sprintf("\x00%s%d", name, i)}
		line(e)
		return e
	}

	local := func(names []string, exprs []ast.Expr) ast.Stmt {
		l := &ast.LocalAssignStmt{Names: names, Exprs: exprs}
		line(l)
		return l
	}

	do := &ast.DoBlockStmt{}
	line(do)

	for i, lhs := range s.Lhs {
		if field, ok := lhs.(*ast.AttrGetExpr); ok {
			do.Stmts = append(do.Stmts, local([]string{ident("object", i).Value, ident("key", i).Value}, []ast.Expr{w.expr(field.Object), w.expr(field.Key)}))
		}
	}

	var values []string
	for i := range max(len(s.Lhs), len(s.Rhs)) {
		values = append(values, ident("value", i).Value)
	}

	do.Stmts = append(do.Stmts, local(values, s.Rhs))
	for i, lhs := range s.Lhs {
		if _, ok := lhs.(*ast.AttrGetExpr); ok {
			do.Stmts = append(do.Stmts, store(ident("object", i), ident("key", i), ident("value", i)))
			continue
		}
		w.expr(lhs)
		a := &ast.AssignStmt{Lhs: []ast.Expr{lhs}, Rhs: []ast.Expr{ident("value", i)}}
		line(a)
		do.Stmts = append(do.Stmts, a)
	}

	return do
}

// functionName checks the parts of "a.b:c", which stay as they are.
func (w *rewriter) functionName(n *ast.FuncName) {
	w.named(n.Method)
	for e := n.Func; e != nil; {
		switch part := e.(type) {
		case *ast.IdentExpr:
			w.named(part.Value)
			e = nil
		case *ast.AttrGetExpr:
			if key, ok := part.Key.(*ast.StringExpr); ok {
				w.named(key.Value)
			}
			e = part.Object
		default:
			e = nil
		}
	}

	if n.Receiver != nil {
		w.functionName(&ast.FuncName{Func: n.Receiver})
	}
}

// named accounts for a name, which is looked up by its text each time.
func (w *rewriter) named(name string) {
	w.constants[name] = true
	w.long = w.long || len(name) > short
}

func (w *rewriter) exprs(all []ast.Expr) {
	for i, e := range all {
		all[i] = w.expr(e)
	}
}

func (w *rewriter) expr(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.StringExpr:
		w.literals[e.Value], w.constants[e.Value] = true, true
	case *ast.NumberExpr:
		w.constants[e.Value] = true
	case *ast.IdentExpr:
		w.named(e.Value)
	case *ast.Comma3Expr:
		c := call(e, hiddenValues, e)
		c.AdjustRet = e.AdjustRet
		return c
	case *ast.AttrGetExpr:
		plain := isShort(e.Key)
		e.Object, e.Key = w.expr(e.Object), w.expr(e.Key)
		if !plain {
			return call(e, hiddenIndex, w.one(e.Object), w.one(e.Key))
		}
	case *ast.TableExpr:
		for _, f := range e.Fields {
			plain := f.Key == nil || isShort(f.Key)
			f.Key, f.Value = w.expr(f.Key), w.expr(f.Value)
			if !plain {
				f.Key = call(e, hiddenKey, w.one(f.Key))
			}
		}
		n := &ast.NumberExpr{Value: fmt.Sprint(len(e.Fields))}
		n.SetLine(e.Line())
		return call(e, hiddenTable, e, n)
	case *ast.FuncCallExpr:
		w.named(e.Method)
		e.Func, e.Receiver = w.expr(e.Func), w.expr(e.Receiver)
		w.exprs(e.Args)
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = w.expr(e.Lhs), w.expr(e.Rhs)
	case *ast.RelationalOpExpr:
		return w.relation(e)
	case *ast.ArithmeticOpExpr:
		e.Lhs, e.Rhs = w.expr(e.Lhs), w.expr(e.Rhs)
		if e.Operator == "^" || !isNumber(e.Lhs) || !isNumber(e.Rhs) {
			return call(e, hiddenArith, w.one(e.Lhs), w.one(e.Rhs), operator(e, e.Operator))
		}
	case *ast.StringConcatOpExpr:
		return w.concat(e)
	case *ast.UnaryMinusOpExpr:
		if e.Expr = w.expr(e.Expr); !isNumber(e.Expr) {
			return call(e, hiddenMinus, w.one(e.Expr))
		}
	case *ast.UnaryNotOpExpr:
		e.Expr = w.expr(e.Expr)
	case *ast.UnaryLenOpExpr:
		return call(e, hiddenLength, w.single(e.Expr))
	case *ast.FunctionExpr:
		w.block(e.Stmts)
	}

	return e
}

// relation counts comparisons of what may be two long strings.
func (w *rewriter) relation(e *ast.RelationalOpExpr) ast.Expr {
	plain := isShort(e.Lhs) || isShort(e.Rhs)
	e.Lhs, e.Rhs = w.expr(e.Lhs), w.expr(e.Rhs)
	if plain {
		return e
	}

	switch e.Operator {
	case "==", "~=":
		c := call(e, hiddenEqual, w.one(e.Lhs), w.one(e.Rhs))
		if e.Operator == "==" {
			return c
		}
		not := &ast.UnaryNotOpExpr{Expr: c}
		not.SetLine(c.Line())
		not.SetLastLine(c.LastLine())
		return not
	}

	return call(e, hiddenLess, w.one(e.Lhs), w.one(e.Rhs), operator(e, e.Operator))
}

func operator(at ast.Expr, name string) ast.Expr {
	s := &ast.StringExpr{Value: name}
	s.SetLine(at.Line())
	return s
}

// isShort reports whether a value is a literal that is cheap to compare and
// look up.
func isShort(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.NilExpr, *ast.TrueExpr, *ast.FalseExpr, *ast.NumberExpr:
		return true
	case *ast.StringExpr:
		return len(e.Value) <= short
	}
	return false
}

// isNumber reports whether the compiler knows that a rewritten expression is a
// number: other operators have become calls.
func isNumber(e ast.Expr) bool {
	switch e.(type) {
	case *ast.NumberExpr, *ast.UnaryMinusOpExpr, *ast.ArithmeticOpExpr:
		return true
	}
	return false
}

// concat turns a chain of operators into calls. As in Lua, the last operands of
// "a .. b .. c" are joined first.
func (w *rewriter) concat(e *ast.StringConcatOpExpr) ast.Expr {
	const operandsPerCall = 50
	var parts []ast.Expr
	var rest ast.Expr = e
	for {
		c, ok := rest.(*ast.StringConcatOpExpr)
		if !ok {
			parts = append(parts, w.single(rest))
			return call(e, hiddenConcat, parts...)
		}

		if len(parts) == operandsPerCall {
			return call(e, hiddenConcat, append(parts, w.concat(c))...)
		}

		parts = append(parts, w.single(c.Lhs))
		rest = c.Rhs
	}
}

// single is an operand: one value, also of a call or of "...".
func (w *rewriter) single(e ast.Expr) ast.Expr { return w.one(w.expr(e)) }

func (w *rewriter) one(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	case *ast.Comma3Expr:
		e.AdjustRet = true
	}
	return e
}
