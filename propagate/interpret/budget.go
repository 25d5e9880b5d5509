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

// What one call of a script may use. A script that is right uses a hundredth
// of it; the limits are part of what a script means, so they are constants.
const (
	maxSteps   = 1_000_000 // instructions, and what library functions do
	maxString  = 256 << 10 // bytes of one string that it builds
	maxStrings = 8 << 20   // bytes of all strings that it builds
	maxIndex   = 1 << 16   // of a list
	maxValues  = 1000      // that one library function returns
	maxDepth   = 100       // of a value that it returns
	maxSource  = 64 << 10  // bytes of the script

	// A table takes as much room as that many list items.
	stepsPerTable = 32
	// An error that is caught takes as long as that many instructions.
	stepsPerError = 2000
	// That many bytes are copied or compared in the time of a step, digits are
	// read and values are handed on.
	bytesPerStep  = 64
	digitsPerStep = 8
	valuesPerStep = 8
	// A fraction is written digit by digit from a number that can have hundreds.
	stepsPerFraction = 32
	// An amount of a resource is read and added.
	stepsPerQuantity = 8
	valuesCompared   = 500
	// A lookup can go through that many tables.
	maxLookedUp = 16
)

// run is one call of a script. It stands in for the context of the Lua
// state, which asks Done before each instruction: so instructions are counted,
// where a context with a deadline would look at the clock.
type run struct {
	context.Context

	script  *Script
	l       *lua.LState
	steps   int
	strings int
	stopped string // why it ended before its time
	tables  map[*lua.LTable]*ledger
	raised  map[string]bool // texts of errors that the script composed
	results []lua.LValue
	// lookedUp are the tables that metatables name to look in.
	lookedUp map[*lua.LTable]bool
}

// ledger is what is known of a table that grew: a walk through it, or a
// search for its end, passes what was removed too.
type ledger struct {
	stores int // that were made into it
	high   int // the highest index stored
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

// Done counts an instruction, and is closed when there were too many.
func (r *run) Done() <-chan struct{} {
	if r.charge(1); r.stopped != "" {
		return closed
	}
	return nil
}

// Err is why Done is closed.
func (r *run) Err() error { return errors.New(r.stopped) }

func (r *run) charge(steps int) {
	if r.steps += steps; r.steps > maxSteps && r.stopped == "" {
		r.steps, r.stopped = maxSteps, fmt.Sprintf("more than %d steps", maxSteps)
	}
}

// spend is charge in the middle of a library function.
func (r *run) spend(steps int) {
	if r.charge(steps); r.stopped != "" {
		r.l.RaiseError("%s", r.stopped)
	}
}

// stop ends the script for good: it cannot catch this.
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

// walked charges for a walk through all that a table ever held.
func (r *run) walked(t *lua.LTable) {
	if g := r.tables[t]; g != nil {
		r.spend(g.stores)
	}
}

// length is the table's, with a charge for what was cut off its end.
func (r *run) length(t *lua.LTable) int {
	n := t.Len()
	if g := r.tables[t]; g != nil {
		r.spend(max(0, g.high-n))
	}
	return n
}

// stores accounts for a value that is going to be stored in a table.
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

// explain turns an error of the engine into one that can be shown. The text
// of an error that the script raises is shown where it stands in the script as
// it is: one that was put together may quote the object.
func (r *run) explain(err error) error {
	if r.stopped != "" {
		return r.script.error("%s", r.stopped)
	}
	var lerr *lua.ApiError
	if !errors.As(err, &lerr) {
		return r.script.error("the script breaks the engine")
	}
	text := "an error that is no text"
	at := ""
	if s, ok := lerr.Object.(lua.LString); ok {
		text = string(s)
		if m := position.FindStringSubmatch(text[:min(len(text), short)]); m != nil && strings.HasPrefix(text, r.script.function+":") {
			at, text = "line "+m[1]+": ", text[len(m[0]):]
		}
	}
	switch {
	case r.raised[text]:
		text = "an error whose text is not shown, as it may quote the object"
	case strings.Contains(text, " with key '"):
		text, _, _ = strings.Cut(text, " with key '")
	}
	return r.script.error("%s%s", at, text)
}

var position = regexp.MustCompile(`^\w+:(\d+): ?`)
