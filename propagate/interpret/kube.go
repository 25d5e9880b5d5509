// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"encoding/json"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/api/resource"
)

// kube is the library that scripts know from Karmada: the rules for pods, for
// kinds that contain one.
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
			template, namespace := r.podTemplate(), l.OptString(2, "")
			if r.script.native.Dependencies == nil {
				return r.pushJSON([]Reference{})
			}
			return r.pushJSON(r.script.native.Dependencies(template, namespace))
		}},
		{"resourceAdd", func(l *lua.LState) int {
			var sum resource.Quantity
			for i := 1; i <= l.GetTop(); i++ {
				r.spend(1)
				switch l.Get(i).(type) {
				case lua.LString, lua.LNumber:
				case *lua.LNilType:
					continue // nothing was asked for
				default:
					l.ArgError(i, "is no quantity")
				}
				text := l.Get(i).String()
				q, err := resource.ParseQuantity(text)
				if err != nil || len(text) > 64 {
					l.ArgError(i, "is no quantity")
				}
				sum.Add(q)
			}
			return r.push(sum.String())
		}},
	}
}

// podTemplate is the first argument.
func (r *run) podTemplate() map[string]any {
	v, err := r.fromLua(r.l.CheckTable(1), nil)
	if err != nil {
		r.l.ArgError(1, "is no pod template")
	}
	template, _ := v.(map[string]any)
	return template
}

// pushJSON returns one of our types as a table.
func (r *run) pushJSON(v any) int {
	text, err := json.Marshal(v)
	if err != nil {
		r.l.RaiseError("no value for Lua")
	}
	r.room(len(text))
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		r.l.RaiseError("no value for Lua")
	}
	r.l.Push(r.toLua(plain))
	return 1
}
