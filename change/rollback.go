// SPDX-License-Identifier: Apache-2.0

package change

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/change/yamledit"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Rollback puts the templates of a policy back to what an earlier commit has. Holds
// and everything else stay as they are, which a revert of the commit that brought an
// image and a hold together cannot do.
type Rollback struct {
	Policy, Namespace string
	To                string // a revision; "" is the commit before the last change of the templates
}

// Name returns the name from which a branch name is derived.
func (f *Rollback) Name() string { return "rollback-" + path.Base(f.Policy) }

// Check accepts every revision.
func (f *Rollback) Check() error { return nil }

// Edit restores the files that the templates are rendered from.
func (f *Rollback) Edit(s *Session) (Edit, error) {
	ref, title, err := s.findPolicy(f.Namespace, f.Policy)
	if err != nil {
		return Edit{}, err
	}

	to, err := f.target(s, ref, title)
	if err != nil {
		return Edit{}, err
	}

	r := &rollback{session: s, policy: ref, title: title, to: to, now: contents(&s.state, ref), then: contents(to.state, ref)}
	if err := r.restore(); err != nil {
		return Edit{}, err
	}

	e := Edit{rollback: r, subject: fmt.Sprintf("fleet: roll back %s to %s", title, source.Short(to.commit.Hash))}
	if len(s.restored)+len(s.created) == 0 {
		r.noteAdded(s.in.Snapshot)
		e.Said = append(e.Said, fmt.Sprintf("the templates of %s are as %s has them", title, called(to.commit)))
		return e, nil
	}

	e.Said = append(e.Said, fmt.Sprintf("rolled back %s to %s: %s", title, called(to.commit), strings.Join(r.files(), " ")))
	return e, nil
}

// target is the commit that is rolled back to.
func (f *Rollback) target(s *Session, ref fleet.PolicyRef, title string) (accepted, error) {
	if f.To == "" {
		return s.beforeLastChange(ref, title)
	}

	hash, err := s.Resolve(f.To)
	if err != nil {
		return accepted{}, err
	}
	state, err := s.At(hash)
	if err != nil {
		return accepted{}, err
	}
	if state.Accepted == "" {
		return accepted{}, fmt.Errorf("no commit up to %s was accepted: there is nothing to roll back to", source.Short(hash))
	}

	c, err := s.Repo.Commit(state.Accepted)
	return accepted{c, &state}, err
}

// accepted is a commit that was accepted, and the state it led to.
type accepted struct {
	commit *source.Commit
	state  *propagate.State
}

// called reads 4f8ce2a "web 1.4.2".
func called(c *source.Commit) string { return fmt.Sprintf("%s %q", source.Short(c.Hash), c.Subject) }

// beforeLastChange walks the history and returns the last commit before the content of
// one of the policy's templates changed. Which templates it has does not count.
func (s *Session) beforeLastChange(ref fleet.PolicyRef, title string) (before accepted, err error) {
	commits, err := s.States.Commits("", s.base.Hash)
	if err != nil {
		return before, err
	}

	last := accepted{state: &propagate.State{}}
	_, err = s.History.Fold(propagate.State{}, commits, func(c *source.Commit, state propagate.State) error {
		if state.Accepted != c.Hash {
			return nil
		}
		if last.commit != nil && changes(last.state, &state, ref) {
			before = last
		}
		last = accepted{c, &state}
		return nil
	})
	if err == nil && before.commit == nil {
		err = fmt.Errorf("no commit has changed the templates of %s since they are in the fleet: there is nothing to roll back to", title)
	}
	return before, err
}

// changes reports whether the content of a template that a policy has before and after
// differs, or whether the template comes or goes.
func changes(before, after *propagate.State, ref fleet.PolicyRef) bool {
	was, is := contents(before, ref), contents(after, ref)
	for key := range was {
		if t := after.Snapshot.Templates.At(key); t == nil || t.Update != was[key].Update {
			return true
		}
	}
	for key := range is {
		if t := before.Snapshot.Templates.At(key); t == nil || t.Update != is[key].Update {
			return true
		}
	}
	return false
}

// contents are the templates that a policy claims in a state, as they are in git.
func contents(s *propagate.State, ref fleet.PolicyRef) map[string]*fleet.Template {
	all := map[string]*fleet.Template{}
	for key, b := range s.Bindings.All() {
		if b.Claim == nil || *b.Claim != ref {
			continue
		}
		if t := s.Snapshot.Templates.At(key); t != nil {
			all[key] = t
		}
	}
	return all
}

// rollback is a rollback in preparation.
type rollback struct {
	session   *Session
	policy    fleet.PolicyRef
	title     string
	to        accepted
	now, then map[string]*fleet.Template
}

// restore replaces the files that differ and that the templates are rendered from.
func (r *rollback) restore() error {
	s := r.session
	there, err := r.to.commit.Tree(s.opt.Path)
	if err != nil {
		return err
	}
	here, err := s.base.Tree(s.opt.Path)
	if err != nil {
		return err
	}
	differ, err := source.Changed(there, here)
	if err != nil {
		return err
	}

	usedThen, err := s.History.Users(r.to.state)
	if err != nil {
		return err
	}
	usedNow, err := s.History.Users(&s.state)
	if err != nil {
		return err
	}

	units := r.units()
	for _, file := range differ {
		of := func(unit string) bool { return units[unit] }
		if !slices.ContainsFunc(usedThen(file), of) && !slices.ContainsFunc(usedNow(file), of) {
			continue
		}
		if err := r.restoreFile(file, there, here); err != nil {
			return err
		}
	}
	return nil
}

// files are those that the edit writes.
func (r *rollback) files() []string {
	all := maps.Clone(r.session.restored)
	maps.Copy(all, r.session.created)
	return slices.Sorted(maps.Keys(all))
}

// units are those that render the templates, now or then.
func (r *rollback) units() map[string]bool {
	units := map[string]bool{}
	for _, templates := range []map[string]*fleet.Template{r.now, r.then} {
		for _, t := range templates {
			units[t.Unit] = true
		}
	}
	return units
}

// restoreFile brings one file back. What was added since stays: what it holds is for
// people to remove.
func (r *rollback) restoreFile(file string, there, here *source.Tree) error {
	then, err := there.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && file == fleet.SettingsFile {
		return nil
	}
	if err != nil {
		return err
	}

	now, err := here.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r.session.restore(file, nil, then)
	}
	if err != nil {
		return err
	}

	text := then
	if r.isMixed(file, now) || r.isMixed(file, then) {
		if text, err = yamledit.Restore(file, now, then, r.restores(file)); err != nil {
			return err
		}
	}
	if bytes.Equal(text, now) {
		return nil
	}
	return r.session.restore(file, now, text)
}

// isMixed reports whether a file holds documents that are not restored with the
// others: it is a unit of its own, or holds policies.
func (r *rollback) isMixed(file string, text []byte) bool {
	if len(r.plain(file)) > 0 {
		return true
	}
	documents, err := yamledit.Identities(file, text)
	return err == nil && slices.ContainsFunc(documents, steers)
}

// steers reports whether a document is for fairlead and no template.
func steers(id yamledit.Identity) bool {
	group, _, _ := strings.Cut(id.APIVersion, "/")
	return group == fleetv1alpha1.GroupVersion.Group || strings.HasSuffix(group, ".karmada.io")
}

// restores tells the documents of a file that are restored: of a plain file the
// templates of the policy, of one that a kustomization reads all but what steers the
// fleet.
func (r *rollback) restores(file string) func(yamledit.Identity) bool {
	plain := r.plain(file)
	return func(id yamledit.Identity) bool {
		if len(plain) > 0 {
			return plain[id]
		}
		return !steers(id)
	}
}

// plain are the policy's templates of a file that is a unit of its own.
func (r *rollback) plain(file string) map[yamledit.Identity]bool {
	plain := map[yamledit.Identity]bool{}
	for _, templates := range []map[string]*fleet.Template{r.now, r.then} {
		for _, t := range templates {
			if t.Unit != file {
				continue
			}
			id := yamledit.Identity{APIVersion: t.APIVersion, Kind: t.Kind, Namespace: t.Namespace, Name: t.Name}
			plain[id] = true
			if id.Namespace == metav1.NamespaceDefault {
				id.Namespace = ""
				plain[id] = true
			}
		}
	}

	return plain
}

// arrives checks that an edit leads to the content that is rolled back to, and changes
// nothing else.
func (r *rollback) arrives(after *fleet.Snapshot) error {
	if r == nil {
		return nil
	}

	for key, want := range r.then {
		is := after.Templates.At(key)
		switch {
		case is == nil || is.Update != want.Update:
			return fmt.Errorf("%s: %s would not be as %s has it: something that is no file of it has changed since, too; edit it by hand", want.Origin, want.ID, source.Short(r.to.commit.Hash))
		case r.now[key] != nil && !reflect.DeepEqual(r.now[key].Immediate, is.Immediate):
			return fmt.Errorf("%s: the annotations that hold or preserve %s would be as %s has them; edit it by hand", want.Origin, want.ID, source.Short(r.to.commit.Hash))
		}
	}

	for d := range ordered.Diff(r.session.in.Snapshot.Templates, after.Templates) {
		if d.Had && d.Has && d.Before.Update == d.After.Update || r.then[d.Key] != nil || r.now[d.Key] != nil {
			continue
		}
		t := d.Before
		if t == nil {
			t = d.After
		}
		return fmt.Errorf("%s: %s is no template of %s and is rendered from the same files, so it would change, too; revert the commit with git, or edit it by hand", t.Origin, t.ID, r.title)
	}

	r.noteAdded(after)
	return nil
}

// noteAdded notes what has come since and is left as it is.
func (r *rollback) noteAdded(after *fleet.Snapshot) {
	var more []object.ID
	for key, t := range r.now {
		if r.then[key] == nil && after.Templates.At(key) != nil {
			more = append(more, t.ID)
		}
	}
	if len(more) == 0 {
		return
	}
	slices.SortFunc(more, func(a, b object.ID) int { return strings.Compare(a.Key(), b.Key()) })
	which := more[0].String()
	if len(more) > 1 {
		which += fmt.Sprintf(" and %d more", len(more)-1)
	}
	r.session.note("%s has come since %s and stays; to remove it, delete its file", which, source.Short(r.to.commit.Hash))
}
