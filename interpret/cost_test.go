// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// The work of an operator or a function on a long string is counted: a string
// of 64 KiB takes as many more steps as a walk through it.
func TestWorkIsCounted(t *testing.T) {
	const size = 64 << 10
	for _, body := range []string{
		`return s == t`,
		`return s ~= t`,
		`return s < t`,
		`return s >= t`,
		`return rawequal(s, t)`,
		`return ({})[s]`,
		`return rawget({}, s)`,
		`return {[s] = 1}`,
		`local x = {} x[s] = 1`,
		`rawset({}, s, 1)`,
		`return pcall(function() return s + 1 end)`,
		`return pcall(function() return -s end)`,
		`return tonumber(s)`,
		`return tonumber(s, 36)`,
		`return pcall(math.floor, s)`,
		`return pcall(math.max, 1, s)`,
		`return pcall(string.rep, "x", s)`,
		`return pcall(string.format, "%d", s)`,
		`return pcall(string.format, s)`,
		`return string.format("%s", s)`,
		`return string.format("%q", s)`,
		`return s .. "x"`,
		`return s:upper()`,
		`return s:reverse()`,
		`return s:find("y")`,
		`return s:find("y", 1, true)`,
		`return s:match("^1*$")`,
		`return s:gsub("1", "2")`,
		`for w in s:gmatch("1") do end`,
		`return table.concat({s, s})`,
		`local x = {s, t, s} table.sort(x)`,
		`for k in pairs(keyed) do end`,
		`return next(keyed, next(keyed))`,
		`return pcall(error, s)`,
		`return pcall(assert, false, s)`,
	} {
		work := func(body string, n int) int {
			script := compiled(t, ReviseReplica, "function ReviseReplica(obj) local s, t, keyed = obj.s, obj.t, obj.keyed "+body+" end")
			// Two equal strings at different addresses, so that there is no shortcut.
			s := strings.Repeat("1", n)
			o := map[string]any{"s": s, "t": strings.Repeat("1", n), "keyed": map[string]any{s: int64(1)}}
			r, err := script.call(func(r *run) []lua.LValue { return []lua.LValue{r.toLua(o)} }, 1)
			if err != nil {
				t.Fatalf("%s: %v", body, err)
			}

			return r.steps
		}

		short, long := work(body, 1)-work("", 1), work(body, size)-work("", size)
		if long-short < size/bytesPerStep {
			t.Errorf("%s: %d steps with a short string, %d with one of %d bytes", body, short, long, size)
		}
	}
}
