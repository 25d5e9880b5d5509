// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/object"
)

// Question is which resources of Kubernetes are read from which clusters.
type Question struct {
	Members  *status.Members
	Clusters []*fleet.Cluster
	Marker   object.Marker // by what the fleet knows its objects

	Words         []string // resources by any name that kubectl accepts, or categories such as all
	Name          string   // "" is every object
	Namespace     string   // "" is that of each cluster's context
	AllNamespaces bool
	Selector      string
	// Whole reads objects instead of the tables that kubectl shows; Both reads both.
	Whole, Both bool

	mu      sync.Mutex
	answers map[string][]answer // by cluster
}

// answer is what a member has of a resource.
type answer struct {
	push.Resource
	table   *metav1.Table
	objects []map[string]any
}

// Ask puts the question to the clusters, and returns the errors of those that did not
// answer it in full.
func (q *Question) Ask(ctx context.Context) map[string]error {
	q.answers = map[string][]answer{}
	return q.Members.Each(ctx, q.Clusters, q.put)
}

// Answered are the clusters that have answered, sorted.
func (q *Question) Answered() []string { return slices.Sorted(maps.Keys(q.answers)) }

func (q *Question) put(ctx context.Context, cluster string, r *push.Reader) error {
	var failed []error
	var asked []push.Resource
	for _, word := range q.Words {
		found, err := r.FindAll(ctx, word)
		if err != nil {
			failed = append(failed, err)
		}
		for _, res := range found {
			if !slices.ContainsFunc(asked, func(other push.Resource) bool { return other.String() == res.String() }) {
				asked = append(asked, res)
			}
		}
	}

	for _, res := range asked {
		a, err := q.read(ctx, cluster, r, res)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		q.mu.Lock()
		q.answers[cluster] = append(q.answers[cluster], a)
		q.mu.Unlock()
	}

	return errors.Join(failed...)
}

func (q *Question) read(ctx context.Context, cluster string, r *push.Reader, res push.Resource) (a answer, err error) {
	a.Resource = res
	s := push.Selection{Name: q.Name, Labels: q.Selector}
	if res.Namespaced && !q.AllNamespaces {
		s.Namespace = cmp.Or(q.Namespace, q.Members.Namespace(cluster))
	}

	if !q.Whole {
		if a.table, err = r.Table(ctx, res, s); err != nil {
			return a, err
		}
	}
	if q.Whole || q.Both {
		for o, err := range r.Objects(ctx, res, s) {
			if err != nil {
				return a, err
			}
			a.objects = append(a.objects, o)
		}
	}
	return a, nil
}

// OnlyNotServed reports whether clusters failed for no other reason than that they do
// not serve what is asked for.
func OnlyNotServed(failed map[string]error) bool {
	for _, err := range failed {
		if !errors.Is(err, member.NotServed) {
			return false
		}
	}
	return true
}

// resources are those of all answers, in the order of the first member that has them.
func (q *Question) resources() (all []push.Resource) {
	for _, cluster := range q.Answered() {
		for _, a := range q.answers[cluster] {
			if !slices.ContainsFunc(all, func(other push.Resource) bool { return other.String() == a.String() }) {
				all = append(all, a.Resource)
			}
		}
	}
	return all
}

// of are the answers about a resource, by cluster.
func (q *Question) of(res push.Resource) map[string]answer {
	by := map[string]answer{}
	for cluster, answers := range q.answers {
		for _, a := range answers {
			if a.String() == res.String() {
				by[cluster] = a
			}
		}
	}
	return by
}

// Lists are the resources that have objects, a list each.
func (q *Question) Lists() (lists []output.List) {
	all := q.resources()
	for _, res := range all {
		var l output.List
		if q.Whole {
			l = q.objects(q.of(res))
		} else {
			l = q.table(res, q.of(res), len(all) > 1)
		}
		if l.Live = true; len(l.Items) > 0 {
			lists = append(lists, l)
		}
	}
	return lists
}

// Nothing says that nothing was found, and where: nobody sees from an empty answer that
// one namespace was looked at.
func (q *Question) Nothing() string {
	all := q.resources()
	var kinds []string
	namespaced := false
	for _, res := range all {
		name := res.String()
		if q.Name != "" {
			name = strings.ToLower(res.Kind)
		}
		kinds, namespaced = append(kinds, name), namespaced || res.Namespaced
	}

	members := q.Answered()
	if len(members) == 0 {
		return fmt.Sprintf("no %s", strings.Join(q.Words, ", "))
	}
	where, hint := "", ""
	if namespaced && !q.AllNamespaces {
		where = " in namespace " + cmp.Or(q.Namespace, q.Members.Namespace(members[0]))
		if q.Namespace == "" {
			hint = "; -A looks in all"
		}
	}
	on := members[0]
	if len(members) > 1 {
		on = fmt.Sprintf("%d clusters", len(members))
	}

	what := kinds[0]
	if len(kinds) > 3 {
		what = strings.Join(q.Words, ", ")
	} else if len(kinds) > 1 {
		what = strings.Join(kinds[:len(kinds)-1], ", ") + " or " + kinds[len(kinds)-1]
	}
	if q.Name != "" {
		what += " " + q.Name
	}
	return fmt.Sprintf("no %s%s on %s%s", what, where, on, hint)
}

// AnnotationCluster names the cluster of an object in a list over several.
const AnnotationCluster = "fairlead.dev/cluster"

// objects are those of all members, sorted, each with the name of its cluster unless
// only one was asked.
func (q *Question) objects(answers map[string]answer) (l output.List) {
	for _, cluster := range slices.Sorted(maps.Keys(answers)) {
		for _, o := range answers[cluster].objects {
			u := &unstructured.Unstructured{Object: o}
			if len(q.Clusters) != 1 {
				annotations := u.GetAnnotations()
				if annotations == nil {
					annotations = map[string]string{}
				}
				annotations[AnnotationCluster] = cluster
				u.SetAnnotations(annotations)
			}
			l.Items = append(l.Items, output.Item{Object: o, Cluster: cluster})
		}
	}

	name := func(it output.Item) (string, string) {
		u := unstructured.Unstructured{Object: it.Object.(map[string]any)}
		return u.GetNamespace(), u.GetName()
	}
	slices.SortStableFunc(l.Items, func(a, b output.Item) int {
		namespaceA, nameA := name(a)
		namespaceB, nameB := name(b)
		return cmp.Or(cmp.Compare(namespaceA, namespaceB), cmp.Compare(nameA, nameB), cmp.Compare(a.Cluster, b.Cluster))
	})
	return l
}

// table has the columns that kubectl shows, CLUSTER after the first and ADOPTION after
// the last: whether this fleet manages the object. Pods are never managed themselves,
// so only -o wide has the column for them, as in karmadactl. Of several resources each
// name has its kind.
func (q *Question) table(res push.Resource, answers map[string]answer, several bool) (l output.List) {
	columns, rows := gather(answers)
	namespaces := res.Namespaced && q.AllNamespaces
	if namespaces {
		l.Columns = append(l.Columns, output.Column{Name: "NAMESPACE"})
	}
	for i, c := range columns {
		l.Columns = append(l.Columns, output.Column{Name: strings.ToUpper(c.Name), Wide: c.Priority > 0})
		if i == 0 {
			l.Columns = append(l.Columns, output.Column{Name: "CLUSTER"})
		}
	}
	l.Columns = append(l.Columns, output.Column{Name: "ADOPTION", Wide: res.Group == "" && res.Kind == "Pod"})

	for _, r := range rows {
		var row []any
		if namespaces {
			row = append(row, r.Object.Namespace)
		}
		if several {
			r.Cells[0] = fmt.Sprintf("%s/%s", strings.ToLower(res.GroupVersionKind.GroupKind().String()), r.Cells[0])
		}
		adopted := "N"
		if q.Marker.Whose(r.Object.Labels, r.Object.Annotations, false) == object.Ours {
			adopted = "Y"
		}
		row = append(append(append(row, r.Cells[0], r.Cluster), r.Cells[1:]...), adopted)
		l.Items = append(l.Items, output.Item{Object: objectOf(r, answers[r.Cluster]), Row: row, Cluster: r.Cluster})
	}
	return l
}

// gather puts the rows of all members together, sorted.
func gather(answers map[string]answer) ([]metav1.TableColumnDefinition, []push.Row) {
	tables := map[string]*metav1.Table{}
	for cluster, a := range answers {
		tables[cluster] = a.table
	}

	columns, rows := push.Gather(slices.Sorted(maps.Keys(answers)), tables)
	slices.SortStableFunc(rows, func(a, b push.Row) int {
		return cmp.Or(cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Name, b.Object.Name), cmp.Compare(a.Cluster, b.Cluster))
	})
	return columns, rows
}

// objectOf is the object of a row: whole if it was read, else its metadata.
func objectOf(r push.Row, a answer) any {
	for _, o := range a.objects {
		u := unstructured.Unstructured{Object: o}
		if u.GetNamespace() == r.Object.Namespace && u.GetName() == r.Object.Name {
			return o
		}
	}

	o := *r.Object
	o.SetGroupVersionKind(a.GroupVersionKind)
	return &o
}
