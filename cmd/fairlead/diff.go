// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

type diffFlags struct {
	lookFlags
	members          memberFlags
	namespace        string
	pending          bool
	detailedExitcode bool
}

func newDiff() *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff CLUSTER [KIND/NAME]",
		Short: "Show drift of a cluster from what git released, or what a resume would release",
		Long: `Reads the released objects from a cluster and shows the fields of their manifests
that differ there: - is live, + is git. Fields that only others set are not shown.

With --pending it reads git alone and shows, for everything that is held on the
cluster, what was released to it and what it gets when the hold is lifted.

For a Secret it shows which keys differ, and never their values.`,
		Example: `  fairlead diff eu-1 --kubeconfig members.yaml
  fairlead diff eu-1 deploy/shop/web
  fairlead diff us-1 --pending`,
		Args: arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.diff(cmd, args) },
	}
	f.bind(cmd.Flags())
	f.members.bind(cmd.Flags())
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "only this namespace (default: all)")
	cmd.Flags().BoolVar(&f.pending, "pending", false, "compare what is held on the cluster with what was released to it, from git alone")
	cmd.Flags().BoolVar(&f.detailedExitcode, "detailed-exitcode", false, "exit 2 if something differs")
	return cmd
}

func (f *diffFlags) diff(cmd *cobra.Command, args []string) error {
	head, state, err := f.folded(cmd.Context())
	if err != nil {
		return err
	}

	warn(cmd.ErrOrStderr(), &state)
	cluster, ok := state.Snapshot.Clusters.Get(args[0])
	if !ok {
		return fmt.Errorf("the fleet has no cluster %q at %s", args[0], source.Short(head))
	}

	asked := func(id object.ID) bool { return f.namespace == "" || id.Namespace == f.namespace }
	if len(args) == 2 {
		id, err := f.object(&state, args[1], cluster.Name)
		if err != nil {
			return err
		}
		asked = func(other object.ID) bool { return other == id }
	}
	var found []status.Difference
	if f.pending {
		found = status.HeldChanges(&state, cluster.Name, asked)
	} else if found, err = f.drifted(cmd.Context(), &state, cluster, asked); err != nil {
		return err
	}
	for _, c := range found {
		if err := f.print(cmd.OutOrStdout(), cluster.Name, c); err != nil {
			return err
		}
	}

	switch {
	case len(found) > 0 && f.detailedExitcode:
		return &exitError{exitDifferences}
	case len(found) > 0:
	case f.pending:
		printable.Fprintf(cmd.ErrOrStderr(), "No held changes for %s at %s.\n", cluster.Name, source.Short(head))
	default:
		printable.Fprintf(cmd.ErrOrStderr(), "%s has what was released to it up to %s.\n", cluster.Name, source.Short(head))
	}

	return nil
}

// object is the one that the user names, of those that the fleet has or had on
// the cluster.
func (f *diffFlags) object(s *propagate.State, word, cluster string) (object.ID, error) {
	asked, err := parseReference([]string{word}, f.namespace)
	if err != nil {
		return object.ID{}, err
	}

	ids := status.Named(s, asked, func(name string) bool { return name == cluster })
	if len(ids) == 0 {
		return object.ID{}, fmt.Errorf("%s is not placed on %s; 'fairlead why %s -c %s' says why", asked, cluster, asked, cluster)
	}

	return asked.One(ids)
}

// drifted reads the cluster. There is nothing to show of one that does not
// answer, so that is a failure: no differences would be a lie.
func (f *diffFlags) drifted(ctx context.Context, s *propagate.State, cluster *fleet.Cluster, asked func(object.ID) bool) (found []status.Difference, err error) {
	ask, err := f.members.open()
	if err != nil {
		return nil, err
	}

	failed := ask.Each(ctx, []*fleet.Cluster{cluster}, func(ctx context.Context, name string, r *push.Reader) error {
		found, err = status.Drift(ctx, s, f.marker, name, r, asked)
		return err
	})
	if failed[cluster.Name] != nil {
		return nil, fmt.Errorf("%s: %s", cluster.Name, status.Cause(failed[cluster.Name]))
	}

	return found, nil
}

// print writes one object in the manner of a unified diff, a hunk for each
// field.
func (f *diffFlags) print(w io.Writer, cluster string, c status.Difference) error {
	var b strings.Builder
	from, to := cluster, "git"
	if f.pending {
		from, to = "released", "wanted"
	}
	printable.Fprintf(&b, "--- %s %s%s\n", from, object.ShortName(c.Object), ofCommit(c.From))
	printable.Fprintf(&b, "+++ %s %s%s\n", to, cmp.Or(c.Origin.String(), "(removed)"), ofCommit(c.To))
	if c.Note != "" {
		printable.Fprintf(&b, "@@ %s @@\n", c.Note)
	}
	for _, d := range c.Fields {
		printable.Fprintf(&b, "@@ %s @@\n", d.Path)
		if d.Redacted {
			b.WriteString("(a value of a Secret)\n")
			continue
		}
		text, err := hunk(d)
		if err != nil {
			return err
		}
		b.WriteString(text)
	}

	_, err := io.WriteString(w, b.String())
	return err
}

// hunk is one field before and after. Of long texts only what changes is
// shown, and the lines around it.
func hunk(d push.Difference) (string, error) {
	before, err := linesOf(d.Before)
	if err != nil {
		return "", err
	}
	after, err := linesOf(d.After)
	if err != nil {
		return "", err
	}
	if before == after {
		// They differ in the end of the last line, which is not seen.
		return fmt.Sprintf("-%q\n+%q\n", d.Before, d.After), nil
	}
	if min(strings.Count(before, "\n"), strings.Count(after, "\n")) > 1 {
		_, hunks, _ := strings.Cut(string(diff.Diff("", []byte(before), "", []byte(after))), "+++ \n")
		return hunks, nil
	}

	var b strings.Builder
	for line := range strings.Lines(before) {
		b.WriteString("-" + line)
	}

	for line := range strings.Lines(after) {
		b.WriteString("+" + line)
	}

	return b.String(), nil
}

// linesOf is a value as YAML, or as the text that it is; "" for none. It comes
// from a cluster, so what would move a terminal's cursor stays written out.
func linesOf(v any) (string, error) {
	text, isText := v.(string)
	switch {
	case v == nil:
		return "", nil
	case isText && strings.Contains(text, "\n") && !strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && unicode.IsControl(r) }):
		return strings.TrimSuffix(text, "\n") + "\n", nil
	}

	raw, err := yaml.Marshal(v)
	return string(raw), err
}

func ofCommit(hash string) string {
	if hash == "" {
		return ""
	}
	return "  of " + source.Short(hash)
}
