// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	sigsyaml "sigs.k8s.io/yaml"

	appsv1alpha1 "github.com/fairlead/fairlead/api/apps/v1alpha1"
	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	configv1alpha1 "github.com/fairlead/fairlead/api/config/v1alpha1"
	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

var update = flag.Bool("update", false, "write what the stories print into them")

// A story is a text archive. Each commit is a folder of it, in order: files
// are added or replaced, "-delete" lists paths that go, "-trailers" are those
// of the commit message, "-after" is the time since the commit before ("2h" if it
// is left out), "-broken" is a reason why the tree cannot be read. A
// file whose first line is "!broken WHY" is a unit that cannot be.
// A folder with "-observe" is no commit: it says what was seen of the members.
// "-show" lists what "-want" has to tell in full, "binding Pod shop/web" in a
// line: binding, works, manifests or why of a template, or what "happened". "-want" is what the commit
// leads to; -update writes it.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no stories", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { tell(t, file) })
	}
}

func tell(t *testing.T, file string) {
	ar, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var s propagate.State
	told := &txtar.Archive{Comment: ar.Comment}
	snapshots := map[string]*fleet.Snapshot{}
	for _, commit := range history(ar) {
		c := commit.Commit
		told.Files = append(told.Files, commit.files...)
		if commit.seen != nil {
			before := s
			restored := restore(t, &s, snapshots)
			s = observe(t, s, *commit.seen)
			if r := propagate.Observe(restored, *commit.seen); print(&r, nil) != print(&s, nil) {
				t.Errorf("%s: a restored state takes it in another way\n%s", c.Hash, print(&r, nil))
			}
			got := print(&s, propagate.Compare(&before, &s, nil))
			told.Files = append(told.Files, txtar.File{Name: c.Hash + "/-want", Data: []byte(got)})
			if !*update && got != commit.want {
				t.Errorf("%s\n--- got\n%s--- want\n%s", c.Hash, got, commit.want)
			}
			continue
		}
		preview, guard := propagate.Preview(s, c)
		before := s
		snapshots[c.Hash] = c.Snapshot
		s = propagate.Step(s, c)
		if again := propagate.Step(s, c); s.Refusal == nil && print(&again, nil) != print(&s, nil) {
			t.Errorf("%s: a second step changes something", c.Hash)
		}
		got := print(&s, propagate.Compare(&before, &preview, guard)) + show(t, &before, &s, commit.show)
		told.Files = append(told.Files, txtar.File{Name: c.Hash + "/-want", Data: []byte(got)})
		if !*update && got != commit.want {
			t.Errorf("%s\n--- got\n%s--- want\n%s", c.Hash, got, commit.want)
		}
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(told), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// storyCommit is a step's input with the files that tell it.
type storyCommit struct {
	propagate.Commit
	files []txtar.File
	tree  map[string]string // nil when it cannot be read
	show  string
	want  string
	seen  *propagate.Observations
}

// history makes commits of the folders of a story. What a commit makes of
// broken units depends on the last accepted one, so it is folded on the way.
func history(ar *txtar.Archive) []storyCommit {
	var all []storyCommit
	var s propagate.State
	var accepted map[string]string // its files, the broken ones as they last were
	tree := map[string]string{}
	at := time.Unix(0, 0)
	for i := 0; i < len(ar.Files); {
		name, _, _ := strings.Cut(ar.Files[i].Name, "/")
		c := storyCommit{Commit: propagate.Commit{Hash: name}}
		after := 2 * time.Hour
		for ; i < len(ar.Files) && strings.HasPrefix(ar.Files[i].Name, name+"/"); i++ {
			f := ar.Files[i]
			switch path.Base(f.Name) {
			case "-want":
				c.want = string(f.Data)
				continue
			case "-show":
				c.show = string(f.Data)
			case "-delete":
				for _, gone := range strings.Fields(string(f.Data)) {
					delete(tree, gone)
				}
			case "-trailers":
				c.Trailers = trailers(string(f.Data))
			case "-after":
				after = duration(string(f.Data))
			case "-observe":
				c.seen = seen(f.Data)
			case "-broken":
				c.Problems = []fleet.Problem{{Message: strings.TrimSpace(string(f.Data))}}
			default:
				tree[strings.TrimPrefix(f.Name, name+"/")] = string(f.Data)
			}
			c.files = append(c.files, f)
		}
		at = at.Add(after)
		c.Time = at.Unix()
		if c.Problems == nil && c.seen == nil {
			c.tree = maps.Clone(tree)
			c.Snapshot, c.Problems = readOn(tree, accepted)
		}
		if all = append(all, c); c.seen != nil {
			s = propagate.Observe(s, *c.seen)
		} else if s = propagate.Step(s, c.Commit); s.Refusal == nil {
			accepted = mended(tree, accepted)
		}
	}
	return all
}

func duration(text string) time.Duration {
	d, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil {
		panic(err)
	}
	return d
}

const broken = "!broken "

// mended is a tree with what its broken files were when they last could be
// read.
func mended(tree, before map[string]string) map[string]string {
	mended := maps.Clone(tree)
	for file, text := range tree {
		if was, had := before[file]; strings.HasPrefix(text, broken) && had {
			mended[file] = was
		} else if strings.HasPrefix(text, broken) {
			mended[file] = ""
		}
	}
	return mended
}

// readOn makes a snapshot of a tree that follows on another one.
func readOn(tree, before map[string]string) (*fleet.Snapshot, []fleet.Problem) {
	wrong := map[string][]fleet.Problem{}
	var all []fleet.Problem
	for _, file := range slices.Sorted(maps.Keys(tree)) {
		if why, is := strings.CutPrefix(tree[file], broken); is {
			why, _, _ = strings.Cut(why, "\n")
			wrong[file] = []fleet.Problem{{Origin: fleet.Origin{File: file, Line: 1}, Message: why}}
			all = append(all, wrong[file]...)
		}
	}
	s, problems := read(mended(tree, before))
	if s == nil || len(all) == 0 {
		return s, problems
	}
	if !s.Settings.Freezes() {
		return nil, all
	}
	for file, why := range wrong {
		s.Units = s.Units.With(file, &fleet.Unit{Path: file, Objects: s.Units.At(file).Objects, Broken: why})
	}
	return s, nil
}

// observe is a step of what was seen, which a second look must not change.
func observe(t *testing.T, s propagate.State, o propagate.Observations) propagate.State {
	next := propagate.Observe(s, o)
	if again := propagate.Observe(next, o); print(&again, nil) != print(&next, nil) {
		t.Errorf("at %d: the same observations change something\n%s\n%s", o.At, print(&next, nil), print(&again, nil))
	}
	return next
}

// seen reads observations: "at" in seconds, "ready" by cluster, "health" by
// object (Deployment default/web) and cluster, "gone" objects by cluster.
func seen(text []byte) *propagate.Observations {
	var doc struct {
		At     int64                                  `json:"at"`
		Ready  map[string]metav1.ConditionStatus      `json:"ready"`
		Health map[string]map[string]propagate.Health `json:"health"`
		Gone   map[string][]string                    `json:"gone"`
	}
	if err := sigsyaml.UnmarshalStrict(text, &doc); err != nil {
		panic(err)
	}
	id := func(name string) object.ID {
		kind, rest, _ := strings.Cut(name, " ")
		namespace, name, _ := strings.Cut(rest, "/")
		return object.ID{Group: map[string]string{"Deployment": "apps"}[kind], Kind: kind, Namespace: namespace, Name: name}
	}
	o := &propagate.Observations{At: doc.At, Ready: doc.Ready, Health: map[propagate.Place]propagate.Health{}}
	for name, clusters := range doc.Health {
		for cluster, health := range clusters {
			o.Health[propagate.Place{Cluster: cluster, ID: id(name)}] = health
		}
	}
	for cluster, names := range doc.Gone {
		for _, name := range names {
			o.Gone = append(o.Gone, propagate.Place{Cluster: cluster, ID: id(name)})
		}
	}
	return o
}

func trailers(text string) []propagate.Trailer {
	var all []propagate.Trailer
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			all = append(all, propagate.Trailer{Key: key, Value: value})
		}
	}
	return all
}

// read makes a snapshot of plain files, one unit each, as package render does
// for plain manifests. The stories are about decisions, so it is no stricter
// than it has to be.
func read(tree map[string]string) (*fleet.Snapshot, []fleet.Problem) {
	s := &fleet.Snapshot{}
	var problems []fleet.Problem
	for _, file := range slices.Sorted(maps.Keys(tree)) {
		unit := &fleet.Unit{Path: file}
		dec := yaml.NewDecoder(strings.NewReader(tree[file]))
		for {
			var node yaml.Node
			err := dec.Decode(&node)
			if errors.Is(err, io.EOF) {
				break
			}
			origin := fleet.Origin{File: file, Line: node.Line}
			if err != nil {
				return nil, []fleet.Problem{{Origin: fleet.Origin{File: file}, Message: err.Error()}}
			}
			if len(node.Content) == 0 || node.Content[0].Tag == "!!null" {
				continue
			}
			origin.Line = node.Content[0].Line
			unit.Objects++
			problems = append(problems, add(s, &node, origin, file)...)
		}
		s.Units = s.Units.With(file, unit)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return s, nil
}

func add(s *fleet.Snapshot, node *yaml.Node, origin fleet.Origin, unit string) []fleet.Problem {
	lines := map[string]int{}
	walk(node.Content[0], "", lines)
	text, err := yaml.Marshal(node)
	if err != nil {
		panic(err)
	}
	var u unstructured.Unstructured
	decode(text, &u.Object)
	var problems []fleet.Problem
	switch kind := u.GetKind(); kind {
	case policyv1alpha1.KindPropagationPolicy, policyv1alpha1.KindClusterPropagationPolicy:
		var doc struct {
			metav1.ObjectMeta `json:"metadata"`
			Spec              policyv1alpha1.PropagationSpec `json:"spec"`
		}
		decode(text, &doc)
		var p *fleet.Policy
		if p, problems = fleet.NewPolicy(kind, doc.ObjectMeta, doc.Spec, origin, lines); p != nil {
			p.Unit = unit
			s.Policies = s.Policies.With(p.Ref.Key(), p)
		}
	case policyv1alpha1.KindOverridePolicy, policyv1alpha1.KindClusterOverridePolicy:
		var doc struct {
			metav1.ObjectMeta `json:"metadata"`
			Spec              policyv1alpha1.OverrideSpec `json:"spec"`
		}
		decode(text, &doc)
		var o *fleet.Override
		if o, problems = fleet.NewOverride(kind, doc.ObjectMeta, doc.Spec, origin, lines); o != nil {
			s.Overrides = s.Overrides.With(o.Ref.Key(), o)
		}
	case appsv1alpha1.KindWorkloadRebalancer:
		var doc appsv1alpha1.WorkloadRebalancer
		decode(text, &doc)
		var r *fleet.Rebalancer
		if r, problems = fleet.NewRebalancer(&doc, origin, lines); r != nil {
			s.Rebalancers = s.Rebalancers.With(r.Name, r)
		}
	case configv1alpha1.KindResourceInterpreterCustomization:
		var doc configv1alpha1.ResourceInterpreterCustomization
		decode(text, &doc)
		var in *fleet.Interpreter
		if in, problems = fleet.NewInterpreter(&doc, origin, lines); in != nil {
			s.Interpreters = s.Interpreters.With(in.Name, in)
		}
	case clusterv1alpha1.KindCluster:
		var doc clusterv1alpha1.Cluster
		decode(text, &doc)
		var c *fleet.Cluster
		if c, problems = fleet.NewCluster(&doc, origin, lines); c != nil {
			s.Clusters = s.Clusters.With(c.Name, c)
		}
	case fleetv1alpha1.KindFleetConfig:
		var doc fleetv1alpha1.FleetConfig
		decode(text, &doc)
		s.Settings, problems = fleet.NewSettings(&doc, origin, lines)
	default:
		var t *fleet.Template
		if t, problems = fleet.NewTemplate(u.Object, object.BuiltinScope, origin, unit); t != nil {
			s.Templates = s.Templates.With(t.Key(), t)
		}
	}
	return problems
}

func decode(text []byte, into any) {
	j, err := sigsyaml.YAMLToJSON(text)
	if err != nil {
		panic(err)
	}
	if u, ok := into.(*map[string]any); ok {
		var o unstructured.Unstructured
		if err := o.UnmarshalJSON(j); err != nil {
			panic(err)
		}
		*u = o.Object
		return
	}
	if err := sigsyaml.UnmarshalStrict(text, into, sigsyaml.DisallowUnknownFields); err != nil && !strings.Contains(err.Error(), "apiVersion") {
		panic(err)
	}
}

func walk(n *yaml.Node, at string, lines map[string]int) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			field := strings.TrimPrefix(at+"."+n.Content[i].Value, ".")
			lines[field] = n.Content[i].Line
			walk(n.Content[i+1], field, lines)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			field := fmt.Sprintf("%s[%d]", at, i)
			lines[field] = item.Line
			walk(item, field, lines)
		}
	}
}

// after tells what a removal waits for.
func after(s *propagate.State, g *propagate.Removal, id object.ID) string {
	var all []string
	for _, a := range s.Awaits(g.Cluster, id) {
		what := a.For(id)
		if a.Content == nil {
			what += ", which has none"
		}
		all = append(all, what)
	}
	if all == nil {
		return ""
	}
	return ", after " + strings.Join(all, ", ")
}

// print shows a state, and what the step to it did.
func print(s *propagate.State, plan *propagate.Plan) string {
	var b bytes.Buffer
	if r := s.Refusal; r != nil {
		verdict := "REFUSED"
		if r.Guard != nil {
			verdict = "HELD"
		}
		fmt.Fprintf(&b, "%s; the state is of %q\n", verdict, s.Accepted)
		for _, p := range r.Problems {
			fmt.Fprintf(&b, "  %s\n", p.Error())
		}
	}
	for _, unit := range s.FrozenUnits() {
		fmt.Fprintf(&b, "%s is frozen as of %q\n", unit, s.Frozen[unit])
	}
	for binding := range s.Bindings.Values() {
		printBinding(&b, s, binding)
	}
	for a := range s.Tombstones.Values() {
		for _, g := range a.Clusters {
			how := "deleted"
			if g.Preserve {
				how = "preserved"
			}
			fmt.Fprintf(&b, "%s on %s: %s since %s%s\n", a.ID, g.Cluster, how, g.Commit, after(s, &g, a.ID))
		}
	}
	for a := range s.Detached.Values() {
		for _, g := range a.Clusters {
			fmt.Fprintf(&b, "%s on %s: left alone since %s\n", a.ID, g.Cluster, g.Commit)
		}
	}
	if plan == nil {
		return b.String()
	}
	fmt.Fprintln(&b, "plan")
	for _, c := range plan.Cells {
		fmt.Fprintf(&b, "  %-8s %-8s %s on %s", c.Disposition, c.Action, c.Object, c.Cluster)
		if r := c.Replicas; r != nil {
			fmt.Fprintf(&b, ", replicas %d -> %d (asked %d)", r.Before, r.After, r.Asked)
		}
		for _, why := range c.Because {
			fmt.Fprintf(&b, ", %s %s", why.Code, why.Origin)
		}
		if c.DependsOn != "" {
			fmt.Fprintf(&b, ", depends on %s", c.DependsOn)
		}
		fmt.Fprintln(&b)
	}
	for _, f := range plan.Findings {
		fmt.Fprintf(&b, "  ! %s %s: %s\n", f.Severity, f.Code, f)
	}
	return b.String()
}

func printBinding(b *bytes.Buffer, s *propagate.State, binding *propagate.Binding) {
	claim := "no policy"
	if binding.Claim != nil {
		claim = binding.Claim.String()
	}
	fmt.Fprintf(b, "%s: %s; template of %s, policy of %s", binding.ID, claim, binding.Active.TemplateCommit, binding.Active.PolicyCommit)
	if p := binding.Pending; p != nil {
		fmt.Fprintf(b, "; %s since %s", p.Reason, p.Since)
	}
	fmt.Fprintln(b)
	if binding.Scheduled.Reason != "Success" && binding.Scheduled.Reason != "" {
		fmt.Fprintf(b, "  %s: %s\n", binding.Scheduled.Reason, binding.Scheduled.Message)
	}
	for _, e := range binding.Evictions {
		fmt.Fprintf(b, "  leaves %s: %s, %s, grace %d s", e.Cluster, e.Reason, e.Purge, e.Grace)
		if e.Since > 0 {
			fmt.Fprintf(b, " since %d", e.Since)
		}
		if e.Gone {
			fmt.Fprint(b, ", gone")
		}
		fmt.Fprintln(b)
	}
	for i := range binding.Works {
		w := &binding.Works[i]
		fmt.Fprintf(b, "  %s", w.Cluster)
		if w.Want.Replicas > 0 {
			fmt.Fprintf(b, " x%d", w.Want.Replicas)
		}
		fmt.Fprintf(b, " of %s", w.Want.Revision)
		switch {
		case w.Blocked != "" && w.Released == nil:
			fmt.Fprintf(b, ", BLOCKED, nothing runs there: %s", w.Blocked)
		case w.Blocked != "":
			fmt.Fprintf(b, ", BLOCKED, runs %s: %s", w.Released.Revision, w.Blocked)
		case w.Held && w.Released == nil:
			fmt.Fprint(b, ", held: nothing runs there")
		case w.Held && w.Released.Digest != w.Want.Digest:
			fmt.Fprintf(b, ", held: runs x%d of %s", w.Released.Replicas, w.Released.Revision)
		case w.Held:
			fmt.Fprint(b, ", held: up to date")
		}
		for _, r := range w.Want.Rules {
			fmt.Fprintf(b, ", %s", r.Override)
		}
		if w.Preserve {
			fmt.Fprint(b, ", preserve")
		}
		if len(w.After) > 0 {
			fmt.Fprintf(b, ", fewer after %s", strings.Join(w.After, ", "))
		}
		fmt.Fprintln(b)
	}
}

// show tells of templates what print leaves out: the binding and the works as
// Karmada's users know them, and the manifests that are to run.
func show(t *testing.T, before, s *propagate.State, lines string) string {
	t.Helper()
	var b bytes.Buffer
	for line := range strings.Lines(lines) {
		noun, object, _ := strings.Cut(strings.TrimSpace(line), " ")
		if noun == "happened" {
			b.WriteString("happened\n" + happened(before, s))
			continue
		}
		if noun == "why" {
			fmt.Fprintf(&b, "why %s\n%s", object, why(t, s, object))
			continue
		}
		binding := named(s, object)
		if binding == nil {
			t.Fatalf("-show: %q has no binding", object)
		}
		if noun == "binding" {
			fmt.Fprintf(&b, "%s\n%s", object, indented(t, s.ResourceBinding(binding)))
			continue
		}
		for i := range binding.Works {
			w := &binding.Works[i]
			fmt.Fprintf(&b, "%s on %s\n", object, w.Cluster)
			switch noun {
			case "works":
				work := s.Work(binding, w)
				work.Spec.Workload.Manifests = nil
				b.WriteString(indented(t, work))
			case "manifests":
				b.WriteString(indented(t, unmarked(s.Manifest(binding.ID, w.Want))))
			default:
				t.Fatalf("-show: %q is none of binding, works, manifests, why, happened", noun)
			}
		}
	}
	return b.String()
}

// happened prints what a step did.
func happened(before, s *propagate.State) string {
	var b strings.Builder
	for _, h := range propagate.Changes(before, s) {
		fmt.Fprintf(&b, "  %-11s %s", h.Type, h.Object)
		if h.Cluster != "" {
			fmt.Fprintf(&b, " on %s", h.Cluster)
		}
		if r := h.Replicas; r != nil {
			fmt.Fprintf(&b, " x%d -> x%d", r.Before, r.After)
		}
		if h.Text != "" {
			fmt.Fprintf(&b, ", %s", h.Text)
		}
		for _, why := range h.Because {
			fmt.Fprintf(&b, ", %s %s", why.Code, why.Origin)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// why prints the chain that leads to each cluster, and who comes closest to a
// template that nobody has.
func why(t *testing.T, s *propagate.State, obj string) string {
	t.Helper()
	var b strings.Builder
	link := func(indent string, l propagate.TraceStep) {
		where := ""
		if l.Origin != (fleet.Origin{}) {
			where = " (" + l.Origin.String() + ")"
		}
		if l.Commit != "" {
			where += " at " + l.Commit
		}
		if l.Note != nil {
			where += fmt.Sprintf(" %+v", *l.Note)
		}
		fmt.Fprintf(&b, "%s%s: %s%s\n", indent, l.Phase, l.Text, where)
	}
	id := identified(s, obj)
	if id == (object.ID{}) {
		t.Fatalf("-show: there is no %q", obj)
	}
	for _, l := range s.Trace(id) {
		link("  ", l)
	}
	binding := s.Bindings.At(id.Key())
	if template := s.Snapshot.Templates.At(id.Key()); template != nil && (binding == nil || binding.Claim == nil) {
		for _, n := range s.NearMisses(template) {
			fmt.Fprintf(&b, "  closest: %s, but %s (%s)\n", n.Policy.Ref, strings.Join(n.Misses, ", "), n.Origin)
		}
	}
	if binding == nil {
		return b.String()
	}
	for name := range s.Snapshot.Clusters.All() {
		fmt.Fprintf(&b, "  %s\n", name)
		for _, l := range s.TraceTo(id, name) {
			link("    ", l)
		}
		if p := s.Reason(binding, name); !p.Placed {
			fmt.Fprintf(&b, "    not there: %s\n", p.Cause)
		}
	}
	return b.String()
}

func identified(s *propagate.State, obj string) object.ID {
	for template := range s.Snapshot.Templates.Values() {
		if template.ID.String() == obj {
			return template.ID
		}
	}
	if b := named(s, obj); b != nil {
		return b.ID
	}
	return object.ID{}
}

func named(s *propagate.State, object string) *propagate.Binding {
	for b := range s.Bindings.Values() {
		if b.ID.String() == object {
			return b
		}
	}
	return nil
}

// unmarked is a manifest without what we write beside its content.
func unmarked(manifest map[string]any) map[string]any {
	meta := manifest["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		keys := meta[field].(map[string]any)
		maps.DeleteFunc(keys, func(key string, _ any) bool { return strings.HasPrefix(key, "fairlead.dev/") })
		if len(keys) == 0 {
			delete(meta, field)
		}
	}
	return manifest
}

func indented(t *testing.T, v any) string {
	t.Helper()
	text, err := sigsyaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return "  " + strings.TrimSuffix(strings.ReplaceAll(string(text), "\n", "\n  "), "  ")
}
