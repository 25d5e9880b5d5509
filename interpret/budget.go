// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Limits of one call of a script. A normal script uses a hundredth of them.
// They are constants because they are part of what a script means.
const (
	maxSteps   = 1_000_000 // instructions, and the work of library functions
	maxString  = 256 << 10 // bytes of a string that it builds
	maxStrings = 8 << 20   // bytes of all strings that it builds
	maxIndex   = 1 << 16   // of a list
	maxValues  = 1000      // returned by one library function
	maxDepth   = 100       // of a value that it returns
	maxSource  = 64 << 10  // bytes of source

	// A table costs as much as that many list items.
	stepsPerTable = 32
	// Catching an error costs as much as that many instructions.
	stepsPerError = 2000
	// Work per step: bytes copied or compared, digits read, values passed on.
	bytesPerStep  = 64
	digitsPerStep = 8
	valuesPerStep = 8
	// A fraction is formatted digit by digit from a number that can have hundreds.
	stepsPerFraction = 32
	// Parsing and adding a quantity.
	stepsPerQuantity = 8
	valuesCompared   = 500
	// A single lookup can go through that many tables.
	maxLookedUp = 16
)

// run is one call of a script. It is the context of the Lua state, which calls
// Done before each instruction. So instructions are counted, where a context
// with a deadline would look at the clock.
//
// It has more than 40 methods because a script has that many ways to spend: each
// library function that costs more than its instruction is one.
type run struct {
	context.Context

	script  *Script
	l       *lua.LState
	steps   int
	strings int
	stopped string // why it was stopped
	tables  map[*lua.LTable]*ledger
	raised  map[string]bool // error texts that the script composed
	secret  bool            // an argument is a Secret
	results []lua.LValue
	// lookedUp are the tables that metatables use for lookups.
	lookedUp map[*lua.LTable]bool
}

// ledger records how a table grew: walking it, or searching for its end, also
// passes removed entries.
type ledger struct {
	stores int // total number of stores
	high   int // highest index stored
}

func newRun(s *Script) *run {
	r := &run{Context: context.Background(), script: s, tables: map[*lua.LTable]*ledger{}, raised: map[string]bool{}, lookedUp: map[*lua.LTable]bool{}}
	r.l = lua.NewState(lua.Options{SkipOpenLibs: true, CallStackSize: 200, RegistrySize: 512, RegistryMaxSize: 8192, RegistryGrowStep: 512})
	r.l.SetContext(r)
	r.openLibraries()
	return r
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Done counts an instruction; its channel is closed after too many.
func (r *run) Done() <-chan struct{} {
	if r.charge(1); r.stopped != "" {
		return closed
	}
	return nil
}

// Err is why the channel of Done is closed.
func (r *run) Err() error { return errors.New(r.stopped) }

func (r *run) charge(steps int) {
	if r.steps += steps; r.steps > maxSteps && r.stopped == "" {
		r.steps, r.stopped = maxSteps, fmt.Sprintf("more than %d steps", maxSteps)
	}
}

// spend is charge from inside a library function.
func (r *run) spend(steps int) {
	if r.charge(steps); r.stopped != "" {
		r.l.RaiseError("%s", r.stopped)
	}
}

// stop ends the script; it cannot catch this error.
func (r *run) stop(format string, args ...any) {
	if r.stopped == "" {
		r.stopped = fmt.Sprintf(format, args...)
	}
	r.l.RaiseError("%s", r.stopped)
}

// room accounts for a string before it is built.
func (r *run) room(bytes int) {
	switch r.strings += bytes; {
	case bytes > maxString || bytes < 0:
		r.stop("a string of more than %d bytes", maxString)
	case r.strings > maxStrings:
		r.stop("strings of more than %d bytes together", maxStrings)
	}
	r.spend(bytes / bytesPerStep)
}

func (r *run) ledger(t *lua.LTable) *ledger {
	g := r.tables[t]
	if g == nil {
		g = &ledger{}
		r.tables[t] = g
	}
	return g
}

// walked charges for a walk through everything a table ever held.
func (r *run) walked(t *lua.LTable) {
	if g := r.tables[t]; g != nil {
		r.spend(g.stores)
	}
}

// length is the table's length, with a charge for entries removed from its end.
func (r *run) length(t *lua.LTable) int {
	n := t.Len()
	if g := r.tables[t]; g != nil {
		r.spend(max(0, g.high-n))
	}
	return n
}

// stores accounts for a value before it is stored in a table.
func (r *run) stores(t *lua.LTable, key lua.LValue) {
	g := r.ledger(t)
	g.stores++
	r.passes(key)
	n, ok := key.(lua.LNumber)
	if !ok || n < 1 || n > whole || n != lua.LNumber(int64(n)) {
		return
	}

	if n > maxIndex {
		r.stop("a list of more than %d items", maxIndex)
	}

	// The list is filled up to the index.
	r.spend(max(0, int(n)-g.high-1))
	g.high = max(g.high, int(n))
}

// explain turns an error of the engine into one that is safe to show. An error
// text is shown if it is a literal of the script; a composed one may quote the
// object.
func (r *run) explain(err error) error {
	if r.stopped != "" {
		return r.script.error("%s", r.stopped)
	}

	var lerr *lua.ApiError
	if !errors.As(err, &lerr) {
		return r.script.error("the script crashed the Lua engine")
	}

	text := "the error value is not a string"
	at := ""
	if s, ok := lerr.Object.(lua.LString); ok {
		text = string(s)
		if m := position.FindStringSubmatch(text[:min(len(text), short)]); m != nil && strings.HasPrefix(text, r.script.function+":") {
			at, text = "line "+m[1]+": ", text[len(m[0]):]
		}
	}

	switch {
	case r.raised[text], r.secret:
		text = "error text withheld, as it may quote the object"
	case strings.Contains(text, " with key '"):
		text, _, _ = strings.Cut(text, " with key '")
	}

	return r.script.error("%s%s", at, text)
}

var position = regexp.MustCompile(`^\w+:(\d+): ?`)
