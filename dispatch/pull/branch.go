// SPDX-License-Identifier: Apache-2.0

package pull

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// Branches is a repository in which every pull cluster has a branch. Its
// errors are those of a Member.
type Branches interface {
	// String is its address, without secrets.
	String() string
	// Head is the last commit of a branch, "" when there is no such branch.
	Head(ctx context.Context, branch string) (string, error)
	// Files are those of the commit that is the head of a branch. It is the
	// error Conflict when the branch is elsewhere by now.
	Files(ctx context.Context, branch, commit string) (Files, error)
	// Hash is what Files says of a content.
	Hash(content []byte) string
	// Commit puts a commit on top of a branch and returns it. It is the error
	// Conflict when the branch is elsewhere by now.
	Commit(ctx context.Context, c BranchCommit) (string, error)
}

// Files are the files of a commit.
type Files interface {
	fs.ReadFileFS
	fs.ReadDirFS
	// BlobHash is the hash of a file's content, and whether there is such a file.
	BlobHash(name string) (string, bool)
	// Err is set when something could not be read, so that what seemed to be
	// absent may be there.
	Err() error
}

// BranchCommit is a commit to make.
type BranchCommit struct {
	Branch string
	On     string // the head; "" makes the branch
	// Files by path; nil removes one.
	Files   map[string][]byte
	Message string
	When    time.Time
}

// Branch is a member as a branch of files that the cluster's own Flux or Argo
// CD applies (see fileOf). What changes together is one commit. What is
// released keeps its file, with the marks by which those tools leave the
// object alone.
func Branch(in Branches, name string) member.Member { return &branch{in: in, name: name} }

type branch struct {
	in   Branches
	name string

	mu    sync.Mutex
	open  bool // head and files are known
	head  string
	files Files // nil without a head
	// edits are for the next commit: contents by path, nil for what goes.
	edits   map[string][]byte
	secrets []string // among the edits, and readable
	warned  bool
	// givenUp are namespaces and definitions whose files are to go, unless
	// something needs them.
	givenUp []givenUp
	// theirs says of which objects the files are somebody else's by now, and stay.
	theirs []string
}

type givenUp struct {
	ref member.Ref
	doc map[string]any
	of  object.Marker
}

// CreatesNamespaces: the file of a namespace goes along.
func (*branch) CreatesNamespaces() {}

func (b *branch) String() string { return "branch " + b.name + " of " + b.in.String() }

// Begin forgets what was not committed.
func (b *branch) Begin(ctx context.Context, ask bool) (member.Position, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.edits, b.secrets, b.givenUp, b.theirs = map[string][]byte{}, nil, nil, nil
	err := b.find(ctx, ask)
	return b.position(), err
}

func (b *branch) position() member.Position {
	return member.Position{Where: b.String(), At: types.UID(b.head)}
}

// find looks where the branch is, when that is asked for or not known.
func (b *branch) find(ctx context.Context, ask bool) error {
	if b.open && !ask {
		return nil
	}
	head, err := b.in.Head(ctx, b.name)
	if err != nil {
		return err
	}
	if !b.open || head != b.head {
		b.open, b.head, b.files = true, head, nil
	}
	return nil
}

// load has the files at hand. It is the error Conflict when the branch has
// moved since it was looked for.
func (b *branch) load(ctx context.Context) error {
	if err := b.find(ctx, false); err != nil || b.head == "" || b.files != nil {
		return err
	}
	files, err := b.in.Files(ctx, b.name, b.head)
	if err != nil {
		b.open = false
		return err
	}
	b.files = files
	return nil
}

// hash is of a file as it is or will be, "" when there is none.
func (b *branch) hash(file string) (string, error) {
	if raw, edited := b.edits[file]; edited {
		if raw == nil {
			return "", nil
		}
		return b.in.Hash(raw), nil
	}
	return b.committed(file)
}

func (b *branch) committed(file string) (string, error) {
	if b.files == nil {
		return "", nil
	}
	h, ok := b.files.BlobHash(file)
	if err := b.files.Err(); err != nil {
		b.files = nil // which remember what could not be read
		return "", &member.Error{Reason: member.Unavailable, Err: err}
	}
	if !ok {
		return "", nil
	}
	return h, nil
}

// at reads the file of an object, and says where it is or would be.
func (b *branch) at(ref member.Ref) (file string, o map[string]any, hash string, err error) {
	file = fileApart(ref)
	o, hash, err = b.read(file)
	if err != nil || hash != "" {
		return file, o, hash, err
	}
	plain := fileOf(ref)
	o, hash, err = b.read(plain)
	if isAnotherKind(o, ref) {
		return file, nil, "", err
	}
	return plain, o, hash, err
}

// read returns an object and the hash of its file; nil for a file that holds
// none, "" when there is no file.
func (b *branch) read(file string) (o map[string]any, hash string, err error) {
	hash, err = b.hash(file)
	if err != nil || hash == "" {
		return nil, "", err
	}
	raw, edited := b.edits[file]
	if !edited {
		if raw, err = b.files.ReadFile(file); err != nil {
			return nil, "", &member.Error{Reason: member.Unavailable, Err: err}
		}
	}
	return parseFile(raw), hash, nil
}

// List leaves out what is not where an object of ours would be.
func (b *branch) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string) iter.Seq2[member.Found, error] {
	return func(yield func(member.Found, error) bool) {
		found, err := b.list(ctx, member.Ref{GroupVersionKind: gvk, Namespace: namespace})
		for _, f := range found {
			if !yield(f, nil) {
				return
			}
		}
		if err != nil {
			yield(member.Found{}, err)
		}
	}
}

func (b *branch) list(ctx context.Context, kind member.Ref) ([]member.Found, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.load(ctx); err != nil || b.files == nil {
		return nil, err
	}
	entries, err := b.files.ReadDir(path.Dir(fileIn(kind, "")))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &member.Error{Reason: member.Unavailable, Err: err}
	}
	var all []member.Found
	for _, e := range entries {
		file := fileIn(kind, e.Name())
		if !strings.HasPrefix(e.Name(), filesOf(kind)) {
			continue
		}
		o, hash, err := b.read(file)
		if err != nil {
			return nil, err
		}
		if o == nil || member.RefOf(o).Kind != kind.Kind || !isFileOf(member.RefOf(o), file) {
			continue
		}
		f := foundIn(o)
		f.UID = types.UID(hash)
		all = append(all, *f)
	}
	return all, nil
}

// Get finds what cannot be read as something that is not ours.
func (b *branch) Get(ctx context.Context, ref member.Ref) (*member.Found, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.load(ctx); err != nil {
		return nil, err
	}
	_, o, hash, err := b.at(ref)
	if err != nil || hash == "" {
		return nil, err
	}
	f := &member.Found{}
	if o != nil {
		f = foundIn(o)
	}
	f.ID, f.UID = ref.ID(), types.UID(hash)
	return f, nil
}

// Holds is the hash of an object's file, "" when there is none.
func (b *branch) Holds(ctx context.Context, ref member.Ref) (types.UID, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.load(ctx); err != nil {
		return "", err
	}
	h, err := b.hash(fileApart(ref))
	if err == nil && h == "" {
		h, err = b.hash(fileOf(ref))
	}
	return types.UID(h), err
}

// Replicas knows none: what an autoscaler does is not written here.
func (b *branch) Replicas(context.Context, member.Ref) (int64, bool, error) { return 0, false, nil }

// Published reads spec.replicas of an object's file.
func (b *branch) Published(ctx context.Context, ref member.Ref) (int64, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.load(ctx); err != nil {
		return 0, false, err
	}
	_, o, _, err := b.at(ref)
	n, ok := replicasIn(o)
	return n, ok, err
}

// Apply writes the file with the next commit, unless it is so already, and that
// of its namespace where there is none.
func (b *branch) Apply(ctx context.Context, manifest map[string]any, opt member.ApplyOptions) (member.Applied, error) {
	raw, err := fileText(manifest)
	if err != nil {
		return member.Applied{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.load(ctx); err != nil {
		return member.Applied{}, err
	}
	ref := member.RefOf(manifest)
	file, o, was, err := b.at(ref)
	switch {
	case err != nil:
		return member.Applied{}, err
	case opt.UID != "" && was != string(opt.UID):
		return member.Applied{}, &member.Error{Reason: member.Gone, Err: errors.New("the file was replaced")}
	case was != "" && isForeign(foundIn(o), opt):
		return member.Applied{}, member.NotOurs(foundIn(o).Labels)
	}
	if b.edit(file, raw) && readable(manifest) {
		b.secrets = append(b.secrets, ref.ID().String())
	}
	if err := b.ensureNamespace(ref.Namespace, opt); err != nil {
		return member.Applied{}, err
	}
	return member.Applied{UID: types.UID(b.in.Hash(raw)), Created: was == ""}, nil
}

// ensureNamespace writes the file of a namespace that something is in. One that is there
// may be the fleet's, ours of before, or anybody's.
func (b *branch) ensureNamespace(namespace string, opt member.ApplyOptions) error {
	ref, ok := namespaceRef(namespace)
	if !ok {
		return nil
	}
	file := fileOf(ref)
	is, err := b.hash(file)
	if err != nil || is != "" {
		return err
	}
	return b.keepNamespace(file, namespaceFile(namespace, opt))
}

func (b *branch) keepNamespace(file string, doc map[string]any) error {
	raw, err := fileText(doc)
	if err == nil {
		b.edit(file, raw)
	}
	return err
}

// settle keeps what was given up and something needs. It returns what that is.
func (b *branch) settle() (kept []string, err error) {
	for _, g := range b.givenUp {
		file := fileOf(g.ref)
		if raw, edited := b.edits[file]; !edited || raw != nil {
			continue // it was wanted again
		}
		needed, err := b.needed(needsOf(g.ref, g.doc))
		if err != nil {
			return nil, err
		}
		if !needed {
			continue
		}
		if err := b.keepNamespace(file, stayingFile(g.doc, g.of)); err != nil {
			return nil, err
		}
		kept = append(kept, g.ref.ID().String())
	}
	slices.Sort(kept)
	return kept, nil
}

// needed reports whether there will be files that need something.
func (b *branch) needed(n needs) (bool, error) {
	for file, raw := range b.edits {
		if raw != nil && n.are(file) {
			return true, nil
		}
	}
	if b.files == nil {
		return false, nil
	}
	return n.someIn(b.files, func(file string) bool {
		_, edited := b.edits[file]
		return edited
	})
}

// edit notes a content for the next commit, and whether it changes anything.
func (b *branch) edit(file string, raw []byte) bool {
	want := ""
	if raw != nil {
		want = b.in.Hash(raw)
	}
	delete(b.edits, file)
	if is, err := b.committed(file); err == nil && is == want {
		return false
	}
	b.edits[file] = raw
	return true
}

// readable reports whether a manifest is a Secret that everyone can read who has
// the file. One that SOPS has encrypted is not.
func readable(manifest map[string]any) bool {
	ref := member.RefOf(manifest)
	return ref.Group == "" && ref.Kind == "Secret" && !object.IsEncrypted(manifest) && (manifest["data"] != nil || manifest["stringData"] != nil)
}

// Adopt has nothing to do: a file has one owner.
func (b *branch) Adopt(context.Context, member.Ref) error { return nil }

// Release leaves the file without our marks, and with those that keep the
// object.
func (b *branch) Release(ctx context.Context, ref member.Ref, uid types.UID, of object.Marker) error {
	return b.leave(ctx, ref, uid, of, func(o map[string]any) ([]byte, error) {
		raw, err := yaml.Marshal(letGo(o))
		if err != nil {
			return nil, &member.Error{Reason: member.Invalid, Err: err}
		}
		return raw, nil
	})
}

// Delete removes the file. That of a namespace or of a definition stays where
// something needs it.
func (b *branch) Delete(ctx context.Context, ref member.Ref, uid types.UID, of object.Marker) error {
	return b.leave(ctx, ref, uid, of, func(o map[string]any) ([]byte, error) {
		if object.IsPrerequisite(ref.ID()) {
			b.givenUp = append(b.givenUp, givenUp{ref, o, of})
		}
		return nil, nil
	})
}

// leave makes something else of a file that is ours. Whoever took our marks out
// of it made it theirs: the hash that is known of it may be of what they wrote.
func (b *branch) leave(ctx context.Context, ref member.Ref, uid types.UID, of object.Marker, become func(map[string]any) ([]byte, error)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.load(ctx); err != nil {
		return err
	}
	file, o, hash, err := b.at(ref)
	if err != nil || hash == "" {
		return err
	}
	switch {
	case uid != "" && hash != string(uid), uid == "" && (o == nil || !foundIn(o).Ours(of)):
		return nil
	case o == nil:
		return &member.Error{Reason: member.Invalid, Err: fmt.Errorf("%s in %s is no longer a single object: fix it or remove it", file, b)}
	case foundIn(o).Whose(of, uid != "") != object.Ours:
		b.theirs = append(b.theirs, fmt.Sprintf("%s stays in %s: %s", ref.ID(), b, notOurs(foundIn(o).Labels)))
		return nil
	}
	raw, err := become(o)
	if err == nil {
		b.edit(file, raw)
	}
	return err
}

// notOurs is why a file with these labels is left alone.
func notOurs(labels map[string]string) string {
	if object.IsManaged(labels) {
		return fmt.Sprintf("its file belongs to the fleet %q", labels[object.LabelFleet])
	}
	return "our marks were removed from its file"
}

// TrailerSource names, in a commit to a branch, the commit of the fleet that
// it is of.
const TrailerSource = "Fairlead-Source"

// Flush commits what was written since Begin.
func (b *branch) Flush(ctx context.Context, of member.Source) (member.Flushed, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept, err := b.settle()
	if err != nil {
		return member.Flushed{}, err
	}
	done := member.Flushed{Changes: len(b.edits)}
	done.Warnings = append(done.Warnings, b.theirs...)
	b.theirs = nil
	if len(b.edits) == 0 {
		done.Position = b.position()
		return done, nil
	}
	head, err := b.in.Commit(ctx, BranchCommit{Branch: b.name, On: b.head, Files: b.edits, Message: message(of), When: of.When})
	if err != nil {
		b.open = false
		return member.Flushed{}, err
	}
	b.head, b.files, b.edits, b.givenUp = head, nil, map[string][]byte{}, nil
	done.Position = b.position()
	for _, id := range kept {
		done.Warnings = append(done.Warnings, fmt.Sprintf("%s stays in %s, because something there needs it", id, b))
	}
	if len(b.secrets) > 0 && !b.warned {
		b.warned = true
		done.Warnings = append(done.Warnings, b.warning())
	}
	return done, nil
}

func message(s member.Source) string {
	subject := strings.TrimSpace("fleet " + s.Commit[:min(len(s.Commit), 7)])
	if s.Subject != "" {
		subject += ": " + s.Subject
	}
	return subject + "\n\n" + TrailerSource + ": " + s.Commit + "\n"
}

func (b *branch) warning() string {
	slices.Sort(b.secrets)
	more := ""
	if n := len(b.secrets) - 1; n > 0 {
		more = fmt.Sprintf(" and %d more stand", n)
	} else {
		more = " stands"
	}
	return fmt.Sprintf("%s%s readable in %s and stays in its history: encrypt it with SOPS in the fleet, or have the cluster fetch it from a vault", b.secrets[0], more, b)
}
