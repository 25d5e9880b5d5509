// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/propagate"
)

// View is a state with the user's selection from it.
type View struct {
	State     *propagate.State
	Namespace string // "" is all
	Name      string // "" is all
	Selector  labels.Selector
	Clusters  []string      // nil is all
	Live      *status.Fleet // as observed on its clusters; nil from git alone
}

// nouns are the kinds of the fleet that are listed, by every accepted name.
var nouns = map[string]func(*View) output.List{
	"cluster": (*View).clusters, "clusters": (*View).clusters,
	"policy": (*View).policies, "policies": (*View).policies,
	"hold": (*View).holds, "holds": (*View).holds,
	"template": (*View).templates, "templates": (*View).templates,
	"binding": (*View).bindings, "bindings": (*View).bindings, "rb": (*View).bindings, "crb": (*View).bindings,
	"work": (*View).works, "works": (*View).works, "wk": (*View).works,
	"object": (*View).objects, "objects": (*View).objects,
}

// Nouns are the names of what git alone tells, as completion offers them.
var Nouns = []string{"clusters", "policies", "holds", "templates", "bindings", "works", "objects"}

// IsNoun reports whether a word names something that git alone tells.
func IsNoun(word string) bool { return nouns[word] != nil }

// List lists what a noun names.
func (v *View) List(noun string) output.List { return nouns[noun](v) }

// shows reports whether something of this name is selected.
func (v *View) shows(namespace, name string, set map[string]string) bool {
	return (v.Namespace == "" || v.Namespace == namespace) && (v.Name == "" || v.Name == name) && v.Selector.Matches(labels.Set(set))
}

func (v *View) showsCluster(name string) bool {
	return len(v.Clusters) == 0 || slices.Contains(v.Clusters, name)
}
