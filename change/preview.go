// SPDX-License-Identifier: Apache-2.0

package change

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"

	"github.com/rogpeppe/go-internal/diff"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/change/yamledit"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/plan"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/propagate"
)

// Edit is a prepared change.
type Edit struct {
	Said []string // messages that say what it does

	policies []*Policy // that it edits
	clusters map[string]yamledit.Cluster
	adopts   *adoption
	rollback *rollback
	subject  string
	trailers []string // of the commit message
	notes    []string // for the user
}

// tell adds a message about a policy's file.
func (c *Edit) tell(p *Policy, format string, args ...any) {
	c.Said = append(c.Said, p.file+": "+fmt.Sprintf(format, args...))
}

// on completes the subject of a commit message with clusters. Many clusters go
// into a trailer.
func (c *Edit) on(subject string, clusters []string) string {
	if len(clusters) <= 4 {
		return subject + " on " + strings.Join(clusters, ", ")
	}
	c.trailers = append(c.trailers, "Clusters: "+strings.Join(clusters, ", "))
	return fmt.Sprintf("%s on %s", subject, report.Count(len(clusters), "cluster"))
}

// Preview is the effect of an edit that is not written yet.
type Preview struct {
	// Plan is nil if the edit changes no file, or if Problems say why its commit
	// would be refused.
	Plan     *plan.Plan
	Problems []fleet.Problem

	session *Session
	edit    Edit
	files   map[string][]byte // in the fleet, as they will be
	author  Author            // of the commit, if there will be one
}

// Empty reports whether the edit changes no file.
func (p *Preview) Empty() bool { return len(p.files) == 0 }

// Preview plans an edit. Holds that end before now are reported as expired.
func (s *Session) Preview(e Edit, now time.Time) (*Preview, error) {
	p := &Preview{session: s, edit: e, files: map[string][]byte{}}
	for name, file := range s.files {
		if text := file.Text(); !bytes.Equal(text, s.read[name]) {
			p.files[name] = text
		}
	}

	maps.Copy(p.files, s.created)
	maps.Copy(p.files, s.restored)
	if p.Empty() {
		return p, nil
	}

	s.notes = append(s.notes, e.notes...)
	whole := maps.Clone(s.uncommitted)
	maps.Copy(whole, p.files)
	in, err := s.History.Edited(s.base, &s.state, whole)
	if err != nil {
		return nil, err
	}
	if in.Snapshot == nil {
		p.Problems = in.Problems
		return p, nil
	}
	if err := s.onlyThat(in.Snapshot, e); err != nil {
		return nil, err
	}

	if !s.opt.DryRun && s.where != toWorkTree {
		if p.author, err = s.opt.Author(); err != nil {
			return nil, err
		}
	}

	in.Hash, in.Trailers = "edit", nil
	after, guard := propagate.Preview(s.state, in)
	compared := propagate.Compare(&s.state, &after, guard)
	compared.Findings = append(compared.Findings, report.HoldFindings(&s.state, &after, now)...)
	e.adopts.judge(s, compared, &after)
	p.Plan = plan.New(compared, plan.Ends{Base: s.base.Hash, Head: in.Hash, Before: &s.state, After: &after})
	if err := p.Plan.AddReleases(s.States, &s.state, compared.Cells, now); err != nil {
		return nil, err
	}
	if guard != nil {
		s.note("it awaits confirmation until a commit message carries the trailer %s", guard.Trailer())
	}

	return p, nil
}

// Patch returns the edit as a patch for git apply.
func (p *Preview) Patch() []byte {
	var all []byte
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		all = append(all, p.session.patch(name, p.files[name])...)
	}
	return all
}

// onlyThat refuses an edit that does not take effect, or changes something else,
// too: a document that a patch overrides, or that two kustomizations use.
func (s *Session) onlyThat(after *fleet.Snapshot, c Edit) error {
	about := map[fleet.PolicyRef]bool{}
	for _, p := range c.policies {
		about[p.now.Ref] = true
		if is, ok := after.Policies.Get(p.now.Ref.Key()); !ok || !p.says(is) {
			return fmt.Errorf("%s: an edit here has no effect on %s: a kustomization overrides it; edit that by hand", p.now.Origin, p.now.Ref)
		}
	}

	for diff := range ordered.Diff(s.in.Snapshot.Policies, after.Policies) {
		was, is := diff.Before, diff.After
		switch {
		case was == nil && c.adopts.brings(is):
		case was == nil || is == nil:
			return fmt.Errorf("the edit would create or remove %s; edit it by hand", cmp.Or(was, is).Ref)
		case !about[is.Ref] && !samePolicy(was, is):
			return fmt.Errorf("%s: this document is also the source of %s, which would change with it; edit it by hand", was.Origin, is.Ref)
		}
	}

	if err := errors.Join(c.adopts.arrives(s, after), c.rollback.arrives(after)); err != nil {
		return err
	}

	for name, doc := range c.clusters {
		if is, ok := after.Clusters.Get(name); !ok || !sameTaints(doc.Taints(), is.Spec.Taints) {
			return fmt.Errorf("%s: an edit here has no effect on Cluster %s: a kustomization overrides it; edit that by hand", s.in.Snapshot.Clusters.At(name).Origin, name)
		}
	}

	for diff := range ordered.Diff(s.in.Snapshot.Clusters, after.Clusters) {
		was, is := diff.Before, diff.After
		if was == nil || is == nil {
			return fmt.Errorf("the edit would create or remove Cluster %s; edit it by hand", cmp.Or(was, is).Name)
		}
		if _, meant := c.clusters[is.Name]; !meant && !sameTaints(was.Spec.Taints, is.Spec.Taints) {
			return fmt.Errorf("%s: this document is also the source of Cluster %s, which would change with it; edit it by hand", was.Origin, is.Name)
		}
	}

	return nil
}

// says reports whether a policy has the values that its document was given.
func (p *Policy) says(is *fleet.Policy) bool {
	everywhere, names := p.doc.Suspended()
	all, some := is.Suspended()
	annotation := func(key string) string {
		text, _ := p.doc.Get("metadata", "annotations", key).(string)
		return text
	}
	var holds map[string]fleetv1alpha1.Hold
	if err := yaml.Unmarshal([]byte(annotation(fleetv1alpha1.AnnotationHolds)), &holds); err != nil {
		return false
	}

	return everywhere == all && slices.Equal(names, some) && maps.Equal(holds, is.Holds) && annotation(fleetv1alpha1.AnnotationActivate) == is.Activate
}

// samePolicy compares the fields that edits change.
func samePolicy(a, b *fleet.Policy) bool {
	return reflect.DeepEqual(a.Spec.Suspension, b.Spec.Suspension) && a.Activate == b.Activate && maps.Equal(a.Holds, b.Holds)
}

func sameTaints(a, b []corev1.Taint) bool {
	return slices.EqualFunc(a, b, func(a, b corev1.Taint) bool { return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect })
}

func (s *Session) patch(file string, text []byte) []byte {
	name := s.inRepository(file)
	old := "a/" + name
	if s.created[file] != nil {
		old = "/dev/null"
	}
	_, patch, _ := bytes.Cut(diff.Diff(old, s.read[file], "b/"+name, text), []byte("\n"))
	return patch
}
