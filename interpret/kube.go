// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"encoding/json"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/api/resource"
)

// kube is Karmada's library for scripts: the rules for pods, for kinds that
// contain one.
func (r *run) kube() []entry {
	return []entry{
		{"accuratePodRequirements", func(l *lua.LState) int {
			template := r.podTemplate()
			if r.script.native.Requirements == nil {
				return r.pushJSON(nil)
			}
			if needs := r.script.native.Requirements(template); needs != nil {
				return r.pushJSON(needs)
			}
			return r.pushJSON(nil)
		}},
		{"getPodDependencies", func(l *lua.LState) int {
			template, namespace := r.podTemplate(), r.optString(2, "")
			if r.script.native.Dependencies == nil {
				return r.pushJSON([]Reference{})
			}
			return r.pushJSON(r.script.native.Dependencies(template, namespace))
		}},
		{"resourceAdd", func(l *lua.LState) int {
			var sum resource.Quantity
			for i := 1; i <= l.GetTop(); i++ {
				r.spend(stepsPerQuantity)
				if l.Get(i) == lua.LNil {
					continue // argument not given
				}

				text := ""
				if lua.LVCanConvToString(l.Get(i)) {
					text = plain(l.Get(i))
				}
				if !IsQuantity(text) {
					l.ArgError(i, "is not a quantity")
				}

				q, err := resource.ParseQuantity(text)
				if err != nil {
					l.ArgError(i, "is not a quantity")
				}

				sum.Add(q)
			}

			return r.push(sum.String())
		}},
	}
}

// podTemplate is the first argument. It is charged several times, since the
// rules walk it repeatedly and compare each container with the others.
func (r *run) podTemplate() map[string]any {
	before := r.steps
	v, err := r.fromLua(r.l.CheckTable(1), nil)
	if err != nil {
		r.l.ArgError(1, "is not a pod template")
	}

	values := r.steps - before
	r.spend(2*values + values*values/valuesCompared)
	template, _ := v.(map[string]any)
	return template
}

// pushJSON returns one of our types as a table.
func (r *run) pushJSON(v any) int {
	text, err := json.Marshal(v)
	if err != nil {
		r.l.RaiseError("cannot be converted to Lua")
	}

	r.room(len(text))
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		r.l.RaiseError("cannot be converted to Lua")
	}

	r.l.Push(r.toLua(plain))
	return 1
}
