// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/edit"
)

type taintFlags struct {
	editFlags
	overwrite bool
}

func newTaint() *cobra.Command {
	var f taintFlags
	cmd := &cobra.Command{
		Use:   "taint CLUSTER KEY[=VALUE]:EFFECT... | KEY[:EFFECT]-...",
		Short: "Taint a cluster, or remove a taint",
		Long: `Adds taints to the Cluster document, or removes those that end in a dash. The
effect is NoSchedule or NoExecute. A tainted cluster gets nothing new that does
not tolerate the taint; what runs there stays, unless the taint is NoExecute
and the gate Failover is on.

Prints the plan of that, and writes the file in the work tree; --commit commits
it, --push commits it on a branch of the remote.`,
		Example: `  fairlead taint eu-1 maintenance=disks:NoSchedule
  fairlead taint eu-1 maintenance=network:NoSchedule --overwrite
  fairlead taint eu-1 maintenance-`,
		Args: arguments(2, math.MaxInt),
		RunE: func(cmd *cobra.Command, args []string) error { return f.taint(cmd, args) },
	}
	f.bind(cmd)
	cmd.Flags().BoolVar(&f.overwrite, "overwrite", false, "replace the value of a taint that is there")
	return cmd
}

// unschedulable is the taint of a cordoned cluster.
var unschedulable = corev1.Taint{Key: "cluster.karmada.io/unschedulable", Effect: corev1.TaintEffectNoSchedule}

func newCordon(verb, short string) *cobra.Command {
	var f taintFlags
	cmd := &cobra.Command{
		Use:   verb + " CLUSTER",
		Short: short,
		Long: short + `: the taint
` + unschedulable.Key + `:` + string(unschedulable.Effect) + `. What runs there stays.

Prints the plan of that, and writes the file in the work tree; --commit commits
it, --push commits it on a branch of the remote.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.cordon(cmd, args[0], verb == "cordon") },
	}
	f.bind(cmd)
	return cmd
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
		return t, usagef("taint %q: key %q: %s", arg, t.Key, validation.IsQualifiedName(t.Key)[0])
	case len(validation.IsValidLabelValue(t.Value)) > 0:
		return t, usagef("taint %q: value %q: %s", arg, t.Value, validation.IsValidLabelValue(t.Value)[0])
	case !hasEffect && remove:
	case t.Effect != corev1.TaintEffectNoSchedule && t.Effect != corev1.TaintEffectNoExecute:
		return t, usagef("taint %q: effect %q must be NoSchedule or NoExecute", arg, effect)
	}
	return t, nil
}

func (f *taintFlags) taint(cmd *cobra.Command, args []string) error {
	// As karmadactl has it: taint clusters NAME KEY=VALUE:EFFECT
	if (args[0] == "clusters" || args[0] == "cluster") && len(args) > 2 && len(validation.IsDNS1123Label(args[1])) == 0 {
		args = args[1:]
	}
	var changes []taintChange
	for _, arg := range args[1:] {
		t, err := parseTaint(arg)
		if err != nil {
			return err
		}
		changes = append(changes, t)
	}
	d, err := f.open(cmd.Context(), "taint-"+args[0])
	if err != nil {
		return err
	}
	doc, err := d.cluster(args[0])
	if err != nil {
		return err
	}
	c := change{clusters: map[string]edit.Cluster{args[0]: doc}}
	if err := f.apply(doc, args[0], changes, &c); err != nil {
		return err
	}
	return d.finish(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), c)
}

// apply makes the changes, and says what became of the cluster as karmadactl
// does.
func (f *taintFlags) apply(doc edit.Cluster, name string, changes []taintChange, c *change) error {
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
		case at >= 0 && !f.overwrite:
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
	c.said = append(c.said, fmt.Sprintf("cluster/%s %s", name, verb))
	c.subject = fmt.Sprintf("fleet: %s %s: %s", map[string]string{"modified": "change taints of", "tainted": "taint", "untainted": "untaint"}[verb], name, strings.Join(what, ", "))
	return nil
}

func (f *taintFlags) cordon(cmd *cobra.Command, name string, on bool) error {
	verb := "uncordon"
	if on {
		verb = "cordon"
	}
	d, err := f.open(cmd.Context(), verb+"-"+name)
	if err != nil {
		return err
	}
	doc, err := d.cluster(name)
	if err != nil {
		return err
	}
	is := slices.ContainsFunc(doc.Taints(), func(t corev1.Taint) bool {
		return t.Key == unschedulable.Key && t.Effect == unschedulable.Effect
	})
	c := change{clusters: map[string]edit.Cluster{name: doc}, subject: "fleet: " + verb + " " + name}
	switch {
	case is == on:
		c.said = []string{fmt.Sprintf("%s cluster already %sed", name, verb)}
	case on:
		c.said = []string{name + " cluster cordoned"}
		err = doc.Taint(unschedulable)
	default:
		c.said = []string{name + " cluster uncordoned"}
		err = doc.Untaint(unschedulable.Key, unschedulable.Effect)
	}
	if err != nil {
		return err
	}
	return d.finish(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), c)
}

// cluster finds a Cluster's document.
func (d *desk) cluster(name string) (edit.Cluster, error) {
	for {
		c, ok := d.in.Snapshot.Clusters.Get(name)
		if !ok {
			return edit.Cluster{}, fmt.Errorf("clusters.%s %q not found at %s", clusterv1alpha1.GroupVersion.Group, name, short(d.base.Hash))
		}
		again, err := d.load(c.Origin.File)
		if err != nil {
			return edit.Cluster{}, err
		}
		if again {
			continue
		}
		o, err := d.document("Cluster", name, c.Origin)
		return edit.Cluster{Object: o}, err
	}
}
