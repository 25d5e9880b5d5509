// SPDX-License-Identifier: Apache-2.0

package dispatchtest

import (
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"sync"
	"unique"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// Work is what one cluster should do with one object.
type Work struct {
	Verb      dispatch.Verb
	Object    map[string]any // without marks
	Overwrite bool
	// RetainReplicas is dispatch.Desire's.
	RetainReplicas bool
	// After is dispatch.Desire's.
	After []dispatch.Acknowledgement
	Err   error // of rendering it
}

// Works is a Fleet made by hand: works by cluster.
type Works map[string][]Work

// Fleet makes a Works a Fleet. The namespaces are documents without marks.
func Fleet(works Works, namespaces ...map[string]any) *Level {
	f := &Level{By: Sea, works: map[string]map[object.ID]Work{}, namespaces: map[string]map[string]any{}}
	for cluster, list := range works {
		f.works[cluster] = map[object.ID]Work{}
		for _, w := range list {
			f.works[cluster][ID(w.Object)] = w
		}
	}
	for _, doc := range namespaces {
		f.namespaces[ID(doc).Name] = doc
	}
	return f
}

// Level is a dispatch.Fleet made by hand.
type Level struct {
	Of member.Source
	By object.Marker // Sea unless it is set

	works      map[string]map[object.ID]Work
	namespaces map[string]map[string]any
}

// Desire implements dispatch.Fleet.
func (f *Level) Desire(cluster string, id object.ID) dispatch.Desire {
	w, ok := f.works[cluster][id]
	if !ok {
		return dispatch.Desire{}
	}
	apiVersion, _ := w.Object["apiVersion"].(string)
	return dispatch.Desire{
		Want:           dispatch.Want{Verb: w.Verb, APIVersion: apiVersion, Digest: Digest(w.Object)},
		Manifest:       func() (map[string]any, error) { return MarkedBy(w.Object, f.By), w.Err },
		Overwrite:      w.Overwrite,
		RetainReplicas: w.RetainReplicas,
		After:          w.After,
	}
}

// Wants implements dispatch.Fleet.
func (f *Level) Wants(cluster string) iter.Seq2[dispatch.Key, dispatch.Want] {
	return func(yield func(dispatch.Key, dispatch.Want) bool) {
		for id := range f.works[cluster] {
			if !yield(unique.Make(id), f.Desire(cluster, id).Want) {
				return
			}
		}
	}
}

// Source implements dispatch.Fleet.
func (f *Level) Source() member.Source { return f.Of }

// Marker implements dispatch.Fleet.
func (f *Level) Marker() object.Marker { return f.By }

// Changed are all keys of the level, as an argument of Sync.
func (f *Level) Changed() map[string][]object.ID {
	out := map[string][]object.ID{}
	for cluster, works := range f.works {
		out[cluster] = slices.Collect(maps.Keys(works))
	}
	return out
}

// Namespace implements dispatch.Fleet.
func (f *Level) Namespace(_, name string) map[string]any {
	if doc := f.namespaces[name]; doc != nil {
		return MarkedBy(doc, f.By)
	}
	return nil
}

// Object reads YAML. It panics at what is none.
func Object(text string) map[string]any {
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	return o
}

// ID is of an object.
func ID(o map[string]any) object.ID {
	meta := o["metadata"].(map[string]any)
	apiVersion, _ := o["apiVersion"].(string)
	kind, _ := o["kind"].(string)
	namespace, _ := meta["namespace"].(string)
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	return object.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: namespace, Name: meta["name"].(string)}
}

// Digest is of an object without marks.
func Digest(o map[string]any) object.Digest {
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return object.DigestOf(raw)
}

// Sea is the fleet of the stories.
var Sea = object.Marker{Name: "sea"}

// Marked is a copy of an object with our marks.
func Marked(o map[string]any) map[string]any { return MarkedBy(o, Sea) }

// MarkedBy is a copy of an object with the marks of a fleet.
func MarkedBy(o map[string]any, by object.Marker) map[string]any {
	out := runtime.DeepCopyJSON(o)
	meta := out["metadata"].(map[string]any)
	set := func(field, key, value string) {
		m, _ := meta[field].(map[string]any)
		if m == nil {
			m = map[string]any{}
			meta[field] = m
		}
		m[key] = value
	}
	set("labels", object.LabelManaged, "true")
	if by.Name != "" {
		set("labels", object.LabelFleet, by.Name)
	}
	set("annotations", object.AnnotationBinding, "test")
	set("annotations", object.AnnotationRevision, "0000000000000000000000000000000000000000")
	set("annotations", object.AnnotationDigest, Digest(o).String())
	return out
}

// Inventory is a dispatch.Inventory in memory.
type Inventory struct {
	mu      sync.Mutex
	entries map[string]map[object.ID]dispatch.Entry
	saves   int
	refuse  error
}

// Load implements dispatch.Inventory.
func (i *Inventory) Load(cluster string, begin func(int), held func(object.ID, *dispatch.Entry)) error {
	stored := i.stored(cluster)
	begin(len(stored))
	for id, e := range stored {
		held(id, &e)
	}
	return nil
}

// stored is all that is stored of a cluster.
func (i *Inventory) stored(cluster string) map[object.ID]dispatch.Entry {
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.entries[cluster])
}

// Save implements dispatch.Inventory.
func (i *Inventory) Save(changed map[string]map[object.ID]*dispatch.Entry) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.saves++
	if i.refuse != nil {
		return i.refuse
	}
	if i.entries == nil {
		i.entries = map[string]map[object.ID]dispatch.Entry{}
	}
	for cluster, entries := range changed {
		if i.entries[cluster] == nil {
			i.entries[cluster] = map[object.ID]dispatch.Entry{}
		}
		for id, e := range entries {
			if e == nil {
				delete(i.entries[cluster], id)
			} else {
				i.entries[cluster][id] = *e
			}
		}
	}
	return nil
}

// Entries are a copy of what is stored of a cluster.
func (i *Inventory) Entries(cluster string) map[object.ID]dispatch.Entry {
	out := i.stored(cluster)
	delete(out, dispatch.IdentityID)
	delete(out, dispatch.PositionID)
	maps.DeleteFunc(out, func(_ object.ID, e dispatch.Entry) bool { return e.APIVersion == "" }) // left running
	return out
}

// Saves counts the calls of Save.
func (i *Inventory) Saves() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.saves
}

// Refuse has Save fail, until it is called with nil.
func (i *Inventory) Refuse(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.refuse = err
}
