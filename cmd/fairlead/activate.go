// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path"

	"github.com/spf13/cobra"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
)

type activateFlags struct {
	editFlags
	namespace string
	value     string
}

func newActivate() *cobra.Command {
	var f activateFlags
	cmd := &cobra.Command{
		Use:   "activate POLICY",
		Short: "Put a policy into effect whose changes wait for their templates",
		Long: `Gives the policy's annotation fairlead.dev/activate a new value: the commit that
the edit goes on top of. That counts as an update of every template which the
policy claims, so what a lazy or static policy puts off takes effect.

Prints the plan of that, and writes the file in the work tree; --commit commits
it, --push commits it on a branch of the remote.`,
		Example: `  fairlead activate default-apps
  fairlead activate default-apps --value 2026-11-28 --commit`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.activate(cmd, args[0]) },
	}
	f.bind(cmd)
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "the policy's namespace")
	cmd.Flags().StringVar(&f.value, "value", "", "the value (default: the short hash of the commit below)")
	return cmd
}

func (f *activateFlags) activate(cmd *cobra.Command, called string) error {
	d, err := f.open(cmd.Context(), "activate-"+path.Base(called))
	if err != nil {
		return err
	}
	p, err := d.policy(f.namespace, called)
	if err != nil {
		return err
	}
	value, err := f.newValue(d, p)
	if err != nil {
		return err
	}
	if err := p.doc.Activate(value); err != nil {
		return err
	}
	waiting := 0
	for b := range d.state.Bindings.Values() {
		if b.Claim != nil && *b.Claim == p.now.Ref && b.Pending != nil {
			waiting++
		}
	}
	if waiting == 0 {
		d.note("nothing waits for %s", p.title)
	}
	c := change{policies: []*policy{p}, subject: "fleet: activate " + p.title}
	c.tell(p, "activated %s with %s", p.title, value)
	return d.finish(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), c)
}

// newValue is one that the annotation does not have: only a change of it
// counts.
func (f *activateFlags) newValue(d *desk, p *policy) (string, error) {
	if f.value != "" && f.value == p.now.Activate {
		return "", fmt.Errorf("%s: the annotation %s is %q already, and only a change of it activates", p.now.Origin, fleetv1alpha1.AnnotationActivate, f.value)
	}
	if f.value != "" {
		return f.value, nil
	}
	base := short(d.base.Hash)
	value := base
	for n := 2; value == p.now.Activate; n++ {
		value = fmt.Sprintf("%s-%d", base, n)
	}
	return value, nil
}
