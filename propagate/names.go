// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"fmt"
	"hash/fnv"
	"strings"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/object"
)

// ExecutionNamespace is the namespace of a cluster's works.
func ExecutionNamespace(cluster string) string { return "karmada-es-" + cluster }

// bindingName is Karmada's (digest §3.1): it leaves the API group out.
func bindingName(id object.ID) string {
	return plainName(id) + "-" + strings.ToLower(id.Kind)
}

// workName is Karmada's (digest §5.6), which leaves the group out too.
func workName(id object.ID) string {
	long := bindingName(id)
	if id.Namespace != "" {
		long = id.Namespace + "-" + long
	}
	h := fnv.New32a()
	h.Write([]byte(long))
	return plainName(id) + "-" + safeDigits.Replace(fmt.Sprint(h.Sum32()))
}

// plainName is an object's name with the characters that a name of ours may have:
// those of roles may have colons and capitals.
func plainName(id object.ID) string {
	return strings.ToLower(strings.ReplaceAll(id.Name, ":", "."))
}

// safeDigits spells a number without vowels and look-alikes.
var safeDigits = strings.NewReplacer("0", "4", "1", "5", "2", "6", "3", "7", "4", "8", "5", "9", "6", "b", "7", "c", "8", "d", "9", "f")

// nameKey sorts the bindings that would share a name by their group.
func nameKey(id object.ID) string {
	return join(id.Namespace, bindingName(id), id.Group, id.Kind, id.Name)
}

// BindingName is the name of a template's binding. Where two templates of
// different groups would share it, the later one has its group appended
// (decision 26).
func (s *State) BindingName(id object.ID) string { return bindingName(id) + s.collision(id) }

// WorkName is the name of a template's works, told apart in the same way.
func (s *State) WorkName(id object.ID) string { return workName(id) + s.collision(id) }

func (s *State) collision(id object.ID) string {
	for first := range under(s.index.names, id.Namespace, bindingName(id)) {
		if first == id {
			break
		}
		return "-" + strings.ToLower(id.Group)
	}
	return ""
}

// count reads "1 object" or "2 objects".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// bindingKind follows from the template's scope.
func bindingKind(id object.ID) string {
	if id.Namespace == "" {
		return workv1alpha2.KindClusterResourceBinding
	}
	return workv1alpha2.KindResourceBinding
}
