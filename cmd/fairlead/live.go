// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/propagate"
)

// live prints a Kubernetes resource as the members have it.
func (f *getFlags) live(cmd *cobra.Command, word, name string, state *propagate.State) error {
	clusters, err := chosen(state, f.clusters)
	if err != nil {
		return err
	}
	if len(clusters) == 0 {
		return errors.New("the fleet has no clusters")
	}
	if name != "" && f.allNamespaces {
		return usagef("a name and -A cannot be used together")
	}
	if name != "" && f.selector != "" {
		return usagef("a name and -l cannot be used together")
	}
	ask, err := f.members.open()
	if err != nil {
		return err
	}

	q := &liveQuestion{flags: f, word: word, name: name, ask: ask, answers: map[string]*liveAnswer{}}
	failed := ask.Each(cmd.Context(), clusters, q.put)
	// An error that is the same everywhere is reported once.
	if err := status.NoneAsked(len(clusters), failed); err != nil {
		return fmt.Errorf("%w; git alone has %s", err, ourNouns)
	}
	if len(q.answers) == 0 && onlyNotServed(failed) {
		return fmt.Errorf("no cluster serves a resource %q, and git has %s", word, ourNouns)
	}

	silent(cmd.ErrOrStderr(), failed)
	if len(q.answers) == 0 {
		return &exitError{exitFailed} // every failure has been reported
	}

	return q.print(cmd.OutOrStdout(), cmd.ErrOrStderr())
}

const ourNouns = "clusters, policies, templates, bindings, works and objects"

func onlyNotServed(failed map[string]error) bool {
	for _, err := range failed {
		if !errors.Is(err, member.NotServed) {
			return false
		}
	}
	return true
}

// liveQuestion is put to every member.
type liveQuestion struct {
	flags      *getFlags
	word, name string
	ask        *status.Members

	mu      sync.Mutex
	answers map[string]*liveAnswer // by cluster
}

// liveAnswer is a member's answer: a table, or with -o json and yaml the objects.
type liveAnswer struct {
	resource push.Resource
	table    *metav1.Table
	objects  []map[string]any
}

func (q *liveQuestion) put(ctx context.Context, cluster string, r *push.Reader) error {
	res, err := r.Find(ctx, q.word)
	if err != nil {
		return err
	}

	a := &liveAnswer{resource: res}
	s := push.Selection{Name: q.name, Labels: q.flags.selector}
	if res.Namespaced && !q.flags.allNamespaces {
		s.Namespace = cmp.Or(q.flags.namespace, q.ask.Namespace(cluster))
	}
	if q.flags.output == "json" || q.flags.output == "yaml" {
		for o, err := range r.Objects(ctx, res, s) {
			if err != nil {
				return err
			}
			a.objects = append(a.objects, o)
		}
	} else if a.table, err = r.Table(ctx, res, s); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.answers[cluster] = a
	return nil
}

func (q *liveQuestion) print(out, stderr io.Writer) error {
	members := slices.Sorted(maps.Keys(q.answers))
	found := 0
	for _, a := range q.answers {
		found += len(a.objects)
		if a.table != nil {
			found += len(a.table.Rows)
		}
	}

	first := q.answers[members[0]].resource
	switch {
	case found == 0 && q.name != "":
		return fmt.Errorf("%s %q not found on %s", first, q.name, strings.Join(members, ", "))
	case found == 0 && (q.flags.output == "table" || q.flags.output == "wide"):
		where := ""
		if first.Namespaced && !q.flags.allNamespaces {
			where = fmt.Sprintf(" in namespace %s", cmp.Or(q.flags.namespace, q.ask.Namespace(members[0])))
		}
		printable.Fprintf(stderr, "No %s found%s.\n", first, where)
		return nil
	}

	switch q.flags.output {
	case "json", "yaml":
		return q.objects(members).print(out, q.flags.output, q.name != "")
	case "name":
		return q.names(out, members)
	}

	return q.table(out, members, first)
}

// objects are those of all members, sorted, each with the name of its cluster
// unless the user chose one.
func (q *liveQuestion) objects(members []string) list {
	type standing struct {
		cluster string
		object  *unstructured.Unstructured
	}
	var all []standing
	for _, cluster := range members {
		for _, o := range q.answers[cluster].objects {
			u := &unstructured.Unstructured{Object: o}
			if len(q.flags.clusters) != 1 {
				annotations := u.GetAnnotations()
				if annotations == nil {
					annotations = map[string]string{}
				}
				annotations[annotationCluster] = cluster
				u.SetAnnotations(annotations)
			}
			all = append(all, standing{cluster, u})
		}
	}

	slices.SortStableFunc(all, func(a, b standing) int {
		return cmp.Or(cmp.Compare(a.object.GetNamespace(), b.object.GetNamespace()), cmp.Compare(a.object.GetName(), b.object.GetName()), cmp.Compare(a.cluster, b.cluster))
	})
	l := list{live: true}
	for _, s := range all {
		l.items = append(l.items, item{object: s.object.Object})
	}

	return l
}

// rows are those of all members, sorted.
func (q *liveQuestion) rows(members []string) ([]metav1.TableColumnDefinition, []push.Row) {
	tables := map[string]*metav1.Table{}
	for cluster, a := range q.answers {
		tables[cluster] = a.table
	}

	columns, rows := push.Gather(members, tables)
	slices.SortStableFunc(rows, func(a, b push.Row) int {
		return cmp.Or(cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Name, b.Object.Name), cmp.Compare(a.Cluster, b.Cluster))
	})
	return columns, rows
}

func (q *liveQuestion) names(out io.Writer, members []string) error {
	printer := &printers.NamePrinter{ShortOutput: true}
	_, rows := q.rows(members)
	for _, r := range rows {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetGroupVersionKind(q.answers[r.Cluster].resource.GroupVersionKind)
		o.SetName(r.Object.Name)
		if err := printer.PrintObj(o, out); err != nil {
			return err
		}
	}

	return nil
}

// table has the columns that kubectl shows, CLUSTER after the first and
// ADOPTION after the last: whether this fleet manages the object. Pods are never managed
// themselves, so only -o wide has the column for them, as in karmadactl.
func (q *liveQuestion) table(out io.Writer, members []string, of push.Resource) error {
	columns, rows := q.rows(members)
	adoption := metav1.TableColumnDefinition{Name: "Adoption", Type: "string"}
	if of.Group == "" && of.Kind == "Pod" {
		adoption.Priority = 1
	}
	table := &metav1.Table{ColumnDefinitions: slices.Concat(
		columns[:1], []metav1.TableColumnDefinition{{Name: "Cluster", Type: "string"}}, columns[1:], []metav1.TableColumnDefinition{adoption},
	)}
	for _, r := range rows {
		adopted := "N"
		if q.flags.marker.Whose(r.Object.Labels, r.Object.Annotations, false) == object.Ours {
			adopted = "Y"
		}
		for i, cell := range r.Cells {
			if cell == nil {
				r.Cells[i] = "<none>" // another member's column
			}
		}
		table.Rows = append(table.Rows, metav1.TableRow{
			Cells:  slices.Concat(r.Cells[:1], []any{r.Cluster}, r.Cells[1:], []any{adopted}),
			Object: runtime.RawExtension{Object: r.Object},
		})
	}

	return printers.NewTablePrinter(printers.PrintOptions{Wide: q.flags.output == "wide", WithNamespace: of.Namespaced && q.flags.allNamespaces}).PrintObj(table, out)
}
