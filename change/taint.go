// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fairlead/fairlead/change/yamledit"
	"github.com/fairlead/fairlead/source"
)

// Taint adds taints to a cluster, or removes them.
type Taint struct {
	Cluster   string
	Taints    []string // KEY[=VALUE]:EFFECT, or KEY[:EFFECT]- to remove
	Overwrite bool     // replace the value of an existing taint

	changes []taintChange
}

// Name returns the name from which a branch name is derived.
func (f *Taint) Name() string { return "taint-" + f.Cluster }

// Check parses the taints.
func (f *Taint) Check() error {
	f.changes = nil
	for _, arg := range f.Taints {
		t, err := parseTaint(arg)
		if err != nil {
			return err
		}
		f.changes = append(f.changes, t)
	}

	return nil
}

// Edit changes the Cluster document.
func (f *Taint) Edit(s *Session) (Edit, error) {
	doc, err := s.cluster(f.Cluster)
	if err != nil {
		return Edit{}, err
	}
	c := Edit{clusters: map[string]yamledit.Cluster{f.Cluster: doc}}
	err = f.apply(doc, &c)
	return c, err
}

// taintChange is one argument: a taint to add, or a key to remove.
type taintChange struct {
	corev1.Taint
	remove bool
}

func (t taintChange) String() string {
	text := t.Key
	if t.Value != "" {
		text += "=" + t.Value
	}
	if t.Effect != "" {
		text += ":" + string(t.Effect)
	}
	return text
}

func parseTaint(arg string) (taintChange, error) {
	spec, remove := strings.CutSuffix(arg, "-")
	t := taintChange{remove: remove}
	spec, effect, hasEffect := strings.Cut(spec, ":")
	t.Key, t.Value, _ = strings.Cut(spec, "=")
	t.Effect = corev1.TaintEffect(effect)
	switch {
	case len(validation.IsQualifiedName(t.Key)) > 0:
		return t, optionf("taint %q: key %q: %s", arg, t.Key, validation.IsQualifiedName(t.Key)[0])
	case len(validation.IsValidLabelValue(t.Value)) > 0:
		return t, optionf("taint %q: value %q: %s", arg, t.Value, validation.IsValidLabelValue(t.Value)[0])
	case !hasEffect && remove:
	case t.Effect != corev1.TaintEffectNoSchedule && t.Effect != corev1.TaintEffectNoExecute:
		return t, optionf("taint %q: effect %q must be NoSchedule or NoExecute", arg, effect)
	}

	return t, nil
}

// apply makes the changes, with the messages of karmadactl.
func (f *Taint) apply(doc yamledit.Cluster, c *Edit) error {
	name, changes := f.Cluster, f.changes
	var added, removed, replaced []string
	for _, t := range changes {
		at := slices.IndexFunc(doc.Taints(), func(old corev1.Taint) bool {
			return old.Key == t.Key && (old.Effect == t.Effect || t.remove && t.Effect == "")
		})
		var err error
		switch {
		case t.remove && at < 0:
			return fmt.Errorf("cluster %s: taint %q not found", name, taintChange{Taint: corev1.Taint{Key: t.Key, Effect: t.Effect}})
		case t.remove:
			removed = append(removed, t.String())
			err = doc.Untaint(t.Key, t.Effect)
		case at >= 0 && !f.Overwrite:
			return fmt.Errorf("cluster %s already has %s taint(s) with same effect(s) and --overwrite is false", name, t.Key)
		case at >= 0:
			replaced = append(replaced, t.String())
			err = doc.Taint(t.Taint)
		default:
			added = append(added, t.String())
			err = doc.Taint(t.Taint)
		}
		if err != nil {
			return err
		}
	}

	verb, what := "modified", slices.Concat(added, replaced, removed)
	switch {
	case len(added) == len(changes):
		verb = "tainted"
	case len(removed) == len(changes):
		verb = "untainted"
	}

	c.Said = append(c.Said, fmt.Sprintf("cluster/%s %s", name, verb))
	c.subject = fmt.Sprintf("fleet: %s %s: %s", map[string]string{"modified": "change taints of", "tainted": "taint", "untainted": "untaint"}[verb], name, strings.Join(what, ", "))
	return nil
}

// cluster returns the document of a Cluster.
func (s *Session) cluster(name string) (yamledit.Cluster, error) {
	for {
		c, ok := s.in.Snapshot.Clusters.Get(name)
		if !ok {
			return yamledit.Cluster{}, fmt.Errorf("clusters.%s %q not found at %s", clusterv1alpha1.GroupVersion.Group, name, source.Short(s.base.Hash))
		}
		again, err := s.load(c.Origin.File)
		if err != nil {
			return yamledit.Cluster{}, err
		}
		if again {
			continue
		}
		o, err := s.document("Cluster", name, c.Origin)
		return yamledit.Cluster{Object: o}, err
	}
}
