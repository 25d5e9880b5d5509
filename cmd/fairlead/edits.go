// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/edit"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/propagate/ordered"
	"github.com/fairlead/fairlead/source"
)

// editFlags are those of the commands that edit the fleet in git.
type editFlags struct {
	lookFlags
	commit bool
	push   string
	dryRun bool
	author string
}

func (f *editFlags) bind(cmd *cobra.Command) {
	f.lookFlags.bind(cmd.Flags())
	cmd.Flags().Lookup("ref").Usage = "branch to edit (default: what is checked out; with --push the repository's default branch)"
	cmd.Flags().BoolVar(&f.commit, "commit", false, "commit the edit, and only that, on the branch")
	cmd.Flags().StringVar(&f.push, "push", "", "commit the edit on a `branch` of the remote, to be reviewed there; without a name it is called by what is edited")
	cmd.Flags().Lookup("push").NoOptDefVal = derivedBranch
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print the plan and the patch, and write nothing")
	cmd.Flags().StringVar(&f.author, "author", "", "who edits, 'Name <mail>' (default: as git has it)")
}

// derivedBranch stands for --push without a name. Help shows it, and no branch
// can be called so.
const derivedBranch = "fairlead/..."

// where is where an edit is written.
type where int

const (
	toWorkTree where = iota
	toBranch
	toRemote
	toNowhere // a dry run without a work tree
)

// desk is where an edit is prepared: the commit that it goes on top of, and the
// files as they will be.
type desk struct {
	*look
	flags  *editFlags
	where  where
	branch string // to commit on
	tree   *source.WorkTree

	base  *source.Commit
	state propagate.State  // folded up to base
	in    propagate.Commit // base, with what is uncommitted in the files of the edit

	uncommitted map[string][]byte // files that the work tree has otherwise than base
	read        map[string][]byte // files as they were read
	files       map[string]*edit.File
	made        map[string][]byte // files that are new
	notes       []string
}

// open finds out what an edit called name is made on, and where it goes.
func (f *editFlags) open(ctx context.Context, name string) (*desk, error) {
	if f.commit && f.push != "" {
		return nil, usagef("--commit and --push are two ways; choose one")
	}
	l, err := f.lookFlags.open(ctx)
	if err != nil {
		return nil, err
	}
	d := &desk{look: l, flags: f, tree: l.repo.WorkTree(), uncommitted: map[string][]byte{}, read: map[string][]byte{}, files: map[string]*edit.File{}, made: map[string][]byte{}}
	var base string
	switch {
	case f.push != "":
		base, err = d.toRemote(name)
	case f.commit:
		base, err = d.toBranch()
	default:
		base, err = d.toWorkTree()
	}
	if err != nil {
		return nil, err
	}
	if d.state, err = l.at(base); err != nil {
		return nil, err
	}
	if d.base, err = l.repo.Commit(base); err != nil {
		return nil, err
	}
	return d, d.reread()
}

// toWorkTree edits what is checked out.
func (d *desk) toWorkTree() (base string, err error) {
	d.where = toWorkTree
	if d.tree == nil {
		if !d.flags.dryRun {
			return "", usagef("%s has no work tree to write to: use --commit, --push or --dry-run", d.flags.repo)
		}
		d.where = toNowhere
		return d.resolve(d.flags.ref)
	}
	head, err := d.repo.Resolve("HEAD")
	if err != nil || d.flags.ref == "" {
		return head, err
	}
	ref, err := d.repo.Resolve(d.flags.ref)
	switch {
	case err != nil:
		return "", err
	case ref == head:
		return head, nil
	case d.flags.dryRun:
		d.where = toNowhere
		return ref, nil
	}
	return "", usagef("--ref %s is not what is checked out in %s: use --commit, --push or --dry-run", d.flags.ref, d.flags.repo)
}

// toBranch commits on a branch of a repository on this machine.
func (d *desk) toBranch() (base string, err error) {
	d.where, d.branch = toBranch, d.flags.ref
	switch {
	case d.repo.Remote() != "":
		return "", usagef("%s is elsewhere: use --push or --dry-run", d.flags.repo)
	case d.branch == "" && d.tree != nil:
		if d.branch = d.tree.Branch(); d.branch == "" {
			return "", usagef("no branch is checked out in %s: name one with --ref", d.flags.repo)
		}
	case d.branch == "":
		if d.branch, err = d.repo.DefaultBranch(); err != nil {
			return "", err
		}
	}
	if d.tree == nil || d.branch != d.tree.Branch() {
		if at := d.repo.CheckedOut(d.branch); at != "" {
			return "", fmt.Errorf("branch %s is checked out at %s: edit it there, with -C", d.branch, at)
		}
		d.tree = nil
	}
	if base, err = d.repo.Resolve("refs/heads/" + d.branch); err != nil {
		return "", fmt.Errorf("--commit: %s is no branch of %s: %w", d.branch, d.flags.repo, err)
	}
	return base, nil
}

// toRemote commits on a branch of the remote, on top of what is there.
func (d *desk) toRemote(name string) (base string, err error) {
	d.where, d.tree, d.branch = toRemote, nil, d.flags.push
	if d.branch == derivedBranch {
		d.branch = "fairlead/" + branchName(name)
	}
	if base, err = d.resolve(d.flags.ref); err != nil {
		return "", err
	}
	known := "refs/remotes/origin/" + d.branch
	if d.repo.Remote() != "" {
		known = "refs/heads/" + d.branch
	}
	there, err := d.repo.Resolve(known)
	if errors.Is(err, source.ErrUnknownRevision) {
		return base, nil
	}
	if err != nil {
		return "", err
	}
	shared, err := d.repo.MergeBase(base, there)
	if err != nil {
		return "", err
	}
	if shared == there {
		return base, nil // all of it is merged
	}
	d.note("branch %s is there already: the commit goes on top of it", d.branch)
	return there, nil
}

var noBranchName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

func branchName(name string) string {
	return strings.Trim(noBranchName.ReplaceAllString(name, "-"), "-")
}

func (d *desk) note(format string, args ...any) {
	if note := fmt.Sprintf(format, args...); !slices.Contains(d.notes, note) {
		d.notes = append(d.notes, note)
	}
}

// reread reads base again, with what is uncommitted.
func (d *desk) reread() (err error) {
	if d.in, err = d.history.Edited(d.base, &d.state, d.uncommitted); err != nil {
		return err
	}
	if d.in.Snapshot == nil {
		what := "commit " + short(d.base.Hash) + " is refused"
		if len(d.uncommitted) > 0 {
			what += " with what is uncommitted"
		}
		return fmt.Errorf("%s: %w; repair it first", what, d.in.Problems[0])
	}
	return nil
}

// load reads the file of a document, and whether that changed what is known of
// the fleet.
func (d *desk) load(file string) (again bool, err error) {
	if d.files[file] != nil {
		return false, nil
	}
	tree, err := d.base.Tree(d.flags.path)
	if err != nil {
		return false, err
	}
	text, err := tree.ReadFile(file)
	if err != nil {
		return false, err
	}
	if d.tree != nil && d.where == toWorkTree {
		there, err := d.tree.Read(d.inRepository(file))
		if err != nil {
			return false, err
		}
		if !bytes.Equal(there, text) {
			if !source.SameButLineEnds(there, text) {
				d.note("%s has changes that are not committed; the plan has them too", d.inRepository(file))
			}
			d.uncommitted[file], text, again = there, there, true
		}
	}
	if d.files[file], err = edit.Read(file, text); err != nil {
		return false, err
	}
	d.read[file] = text
	if again {
		err = d.reread()
	}
	return again, err
}

// create lays a new file on the desk, in a place that nothing has.
func (d *desk) create(file string, text []byte) error {
	tree, err := d.base.Tree(d.flags.path)
	if err != nil {
		return err
	}
	for at := file; at != "."; at = path.Dir(at) {
		info, err := tree.Stat(at)
		if errors.Is(err, fs.ErrNotExist) || err == nil && at != file && info.IsDir() {
			continue
		}
		return errors.Join(err, fmt.Errorf("%s is there already at %s: choose another place with --into", d.inRepository(at), short(d.base.Hash)))
	}
	if err := d.vacant(file); err != nil {
		return err
	}
	d.made[file] = text
	return nil
}

// vacant checks that a new file would replace nothing in the work tree.
func (d *desk) vacant(file string) error {
	if d.tree == nil {
		return nil
	}
	there, err := d.tree.Has(d.inRepository(file))
	if err == nil && there {
		err = fmt.Errorf("%s is there already and not committed: commit it or remove it, or choose another place with --into", d.inRepository(file))
	}
	return err
}

func (d *desk) inRepository(file string) string { return path.Join(d.flags.path, file) }

// document is the text that something of the fleet was read from.
func (d *desk) document(kind, name string, origin propagate.Origin) (*edit.Object, error) {
	made := func() error {
		return fmt.Errorf("%s: %s %s is made there by a kustomization and has no document of its own; edit what makes it by hand", origin, kind, name)
	}
	if origin.Line == 0 {
		return nil, made()
	}
	o, err := d.files[origin.File].At(origin.Line, kind, name)
	if errors.Is(err, edit.ErrNotThere) {
		return nil, made()
	}
	return o, err
}

// policy is a policy that is edited.
type policy struct {
	now   *propagate.Policy // as it is before the edit
	doc   edit.Policy
	file  string // in the repository
	title string // as it is called, with its namespace where it needs one
}

// policy finds a policy by what the user calls it: NAME, NS/NAME, or /NAME for
// a ClusterPropagationPolicy.
func (d *desk) policy(namespace, called string) (*policy, error) {
	ref, title, err := d.findPolicy(namespace, called)
	if err != nil {
		return nil, err
	}
	return d.policyOf(ref, title)
}

func (d *desk) policyOf(ref propagate.PolicyRef, title string) (*policy, error) {
	for {
		p, ok := d.in.Snapshot.Policies.Get(ref.Key())
		if !ok {
			return nil, fmt.Errorf("%s is not there any more in what is uncommitted", ref)
		}
		again, err := d.load(p.Origin.File)
		if err != nil {
			return nil, err
		}
		if again {
			continue
		}
		o, err := d.document(ref.Kind(), ref.Name, p.Origin)
		if err != nil {
			return nil, err
		}
		return &policy{p, edit.Policy{Object: o}, d.inRepository(p.Origin.File), title}, nil
	}
}

func (d *desk) findPolicy(namespace, called string) (ref propagate.PolicyRef, title string, err error) {
	name, scoped := called, namespace != ""
	if before, after, ok := strings.Cut(called, "/"); ok {
		if scoped && before != namespace {
			return ref, "", usagef("-n %s and %s name two namespaces", namespace, called)
		}
		namespace, name, scoped = before, after, true
	}
	var named, found []propagate.PolicyRef
	for p := range d.in.Snapshot.Policies.Values() {
		if p.Ref.Name != name {
			continue
		}
		named = append(named, p.Ref)
		if !scoped || p.Ref.Namespace == namespace {
			found = append(found, p.Ref)
		}
	}
	switch {
	case len(found) == 0 && len(named) > 0:
		return ref, "", fmt.Errorf("policy %q not found at %s; there is %s", called, short(d.base.Hash), d.list(named))
	case len(found) == 0:
		return ref, "", fmt.Errorf("policy %q not found at %s", called, short(d.base.Hash))
	case len(found) > 1:
		return ref, "", fmt.Errorf("policy %q is ambiguous: %s; write NAMESPACE/NAME, or /NAME for a cluster policy", called, d.list(found))
	}
	return found[0], titleOf(found[0], len(named) == 1), nil
}

// titleOf is how a policy is called: by its name where that is enough.
func titleOf(ref propagate.PolicyRef, unique bool) string {
	if unique || ref.Namespace == "" {
		return ref.Name
	}
	return ref.Namespace + "/" + ref.Name
}

func (d *desk) list(refs []propagate.PolicyRef) string {
	var names []string
	for _, ref := range refs {
		names = append(names, fmt.Sprintf("%s (%s)", ref, d.in.Snapshot.Policies.At(ref.Key()).Origin))
	}
	return strings.Join(names, ", ")
}

// change is an edit that was made on the desk.
type change struct {
	policies []*policy // that it is about
	clusters map[string]edit.Cluster
	adopts   *adoption
	subject  string
	trailers []string // lines of the message below it
	said     []string // what it does, once it is written
	notes    []string // what to know about that
}

// finish plans the edit and writes it to where it goes.
func (d *desk) finish(ctx context.Context, out, stderr io.Writer, c change) error {
	edited := map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		if text := d.files[name].Text(); !bytes.Equal(text, d.read[name]) {
			edited[name] = text
		}
	}
	maps.Copy(edited, d.made)
	if len(edited) == 0 {
		d.say(out, stderr, c.said)
		return nil
	}
	d.notes = append(d.notes, c.notes...)
	whole := maps.Clone(d.uncommitted)
	maps.Copy(whole, edited)
	in, err := d.history.Edited(d.base, &d.state, whole)
	if err != nil {
		return err
	}
	if in.Snapshot == nil {
		for _, p := range in.Problems {
			fmt.Fprintln(out, p.Error())
		}
		fmt.Fprintf(stderr, "fairlead: the edit would be refused: %s; nothing is written\n", count(len(in.Problems), "problem"))
		return &exitError{exitFailed}
	}
	if err := d.onlyThat(in.Snapshot, c); err != nil {
		return err
	}
	var who author
	if !d.flags.dryRun && d.where != toWorkTree {
		if who, err = findAuthor(d.flags.author, d.repo); err != nil {
			return err
		}
	}
	if err := d.plan(out, stderr, in, c); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if d.flags.dryRun {
		for _, name := range slices.Sorted(maps.Keys(edited)) {
			if _, err := out.Write(d.patch(name, edited[name])); err != nil {
				return err
			}
		}
		fmt.Fprintln(out)
		d.say(out, stderr, append(c.said, "nothing is written: this is a dry run"))
		return nil
	}
	done, err := d.write(ctx, edited, who, c)
	if err != nil {
		return err
	}
	d.say(out, stderr, append(c.said, done))
	return nil
}

func (d *desk) say(out, stderr io.Writer, said []string) {
	for _, line := range said {
		fmt.Fprintln(out, line)
	}
	for _, note := range d.notes {
		fmt.Fprintf(stderr, "note: %s\n", note)
	}
}

// onlyThat refuses an edit that does not reach what it is about, or reaches
// more: a document that a patch overrules, or that two kustomizations use.
func (d *desk) onlyThat(after *propagate.Snapshot, c change) error {
	about := map[propagate.PolicyRef]bool{}
	for _, p := range c.policies {
		about[p.now.Ref] = true
		if is, ok := after.Policies.Get(p.now.Ref.Key()); !ok || !p.says(is) {
			return fmt.Errorf("%s: an edit here does not reach %s: a kustomization overrules it; edit that by hand", p.now.Origin, p.now.Ref)
		}
	}
	for diff := range ordered.Diff(d.in.Snapshot.Policies, after.Policies) {
		was, is := diff.Before, diff.After
		switch {
		case was == nil && c.adopts.brings(is):
		case was == nil || is == nil:
			return fmt.Errorf("the edit would make or remove %s; edit it by hand", cmp.Or(was, is).Ref)
		case !about[is.Ref] && !samePolicy(was, is):
			return fmt.Errorf("%s: this document also makes %s, which would change with it; edit it by hand", was.Origin, is.Ref)
		}
	}
	if err := c.adopts.arrives(d, after); err != nil {
		return err
	}
	for name, doc := range c.clusters {
		if is, ok := after.Clusters.Get(name); !ok || !sameTaints(doc.Taints(), is.Spec.Taints) {
			return fmt.Errorf("%s: an edit here does not reach Cluster %s: a kustomization overrules it; edit that by hand", d.in.Snapshot.Clusters.At(name).Origin, name)
		}
	}
	for diff := range ordered.Diff(d.in.Snapshot.Clusters, after.Clusters) {
		was, is := diff.Before, diff.After
		if was == nil || is == nil {
			return fmt.Errorf("the edit would make or remove Cluster %s; edit it by hand", cmp.Or(was, is).Name)
		}
		if _, meant := c.clusters[is.Name]; !meant && !sameTaints(was.Spec.Taints, is.Spec.Taints) {
			return fmt.Errorf("%s: this document also makes Cluster %s, which would change with it; edit it by hand", was.Origin, is.Name)
		}
	}
	return nil
}

// says is whether a policy says what its document was edited to say.
func (p *policy) says(is *propagate.Policy) bool {
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

// samePolicy compares what edits change, wherever it stands.
func samePolicy(a, b *propagate.Policy) bool {
	return reflect.DeepEqual(a.Spec.Suspension, b.Spec.Suspension) && a.Activate == b.Activate && maps.Equal(a.Holds, b.Holds)
}

func sameTaints(a, b []corev1.Taint) bool {
	return slices.EqualFunc(a, b, func(a, b corev1.Taint) bool { return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect })
}

// plan prints what the edit does to every cluster.
func (d *desk) plan(out, stderr io.Writer, in propagate.Commit, c change) error {
	warn(stderr, &d.state)
	in.Hash, in.Trailers = "edit", nil
	after, guard := propagate.Preview(d.state, in)
	plan := propagate.Compare(&d.state, &after, guard)
	plan.Findings = append(plan.Findings, holdFindings(&d.state, &after, today())...)
	c.adopts.judge(d, plan, &after)
	r := newPlanReport(plan, d.base.Hash, in.Hash, &after)
	if guard != nil {
		d.note("the step is held until a commit message carries the trailer %s", guard.Trailer())
	}
	return r.text(out)
}

func (d *desk) patch(file string, text []byte) []byte {
	name := d.inRepository(file)
	old := "a/" + name
	if d.made[file] != nil {
		old = "/dev/null"
	}
	_, patch, _ := bytes.Cut(diff.Diff(old, d.read[file], "b/"+name, text), []byte("\n"))
	return patch
}

// write puts the edited files where they go, and says where that is.
func (d *desk) write(ctx context.Context, edited map[string][]byte, who author, c change) (done string, err error) {
	files := map[string][]byte{}
	for name, text := range edited {
		files[d.inRepository(name)] = text
	}
	if d.where == toWorkTree {
		for name := range edited {
			if d.made[name] != nil {
				if err := d.vacant(name); err != nil {
					return "", err
				}
				continue
			}
			if there, err := d.tree.Read(d.inRepository(name)); err != nil || !bytes.Equal(there, d.read[name]) && !source.SameButLineEnds(there, d.read[name]) {
				return "", errors.Join(err, fmt.Errorf("%s has changed meanwhile; nothing is written", d.inRepository(name)))
			}
		}
		if err := d.tree.Write(files); err != nil {
			return "", err
		}
		return "written to the work tree, not committed", nil
	}
	message := c.subject + "\n"
	if len(c.trailers) > 0 {
		message += "\n" + strings.Join(c.trailers, "\n") + "\n"
	}
	e := source.Edit{Branch: d.branch, On: d.base.Hash, Message: message, Author: who.name, Mail: who.mail, When: who.when, Files: files}
	var hash string
	switch {
	case d.where == toRemote:
		if hash, err = d.repo.Draft(d.base.Hash, e); err != nil {
			return "", err
		}
		auth, err := d.flags.credentials()
		if err != nil {
			return "", err
		}
		to, err := d.repo.Push(ctx, hash, d.branch, auth)
		if err != nil {
			return "", fmt.Errorf("nothing is pushed: %w", err)
		}
		return fmt.Sprintf("pushed %s to branch %s of %s", short(hash), d.branch, to), nil
	case d.tree != nil:
		hash, err = d.tree.Commit(e)
	default:
		hash, err = d.repo.Apply(e)
	}
	var uncommitted *source.UncommittedError
	switch {
	case errors.As(err, &uncommitted):
		return "", fmt.Errorf("nothing is committed: %w; commit or stash that first", err)
	case err != nil && hash == "":
		return "", fmt.Errorf("nothing is committed: %w", err)
	case err != nil:
		return "", fmt.Errorf("committed %s on branch %s, but git's index is not up to date: %w; 'git reset' brings it there", short(hash), d.branch, err)
	}
	return fmt.Sprintf("committed %s on branch %s (not pushed)", short(hash), d.branch), nil
}
