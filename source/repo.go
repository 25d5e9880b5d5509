// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// ErrUnknownRevision is wrapped by Resolve if a revision does not name a
// commit.
var ErrUnknownRevision = errors.New("unknown revision")

// Repo is an object store and its refs. It is safe for concurrent use.
//
// It has more than 40 methods because one lock guards the objects, the refs and
// the packs on disk, which git changes together; each file has the methods of one
// of these.
type Repo struct {
	path   string                 // as given by the user, for messages
	gitDir string                 // has HEAD
	common string                 // has objects and refs; gitDir, except for a linked work tree
	remote atomic.Pointer[remote] // nil for a repository that was opened in place
	of     *Repo                  // the mirror that it is beside; nil for any other
	most   int64                  // how many bytes one fetch may bring; 0 is maxPack

	reads atomic.Int64 // of objects

	mu      sync.Mutex // go-git's storages are not safe for concurrent use
	stores  []*store
	stamp   string // of the packs and the shallow file that were read
	objects cache.Object
	refs    *filesystem.Storage
	shallow map[plumbing.Hash]bool

	// damaged is set when an object is missing that another one refers to. Fetch
	// then clones the mirror again.
	damaged atomic.Bool
}

// Open opens a local repository: a bare one, a work tree, or a linked work
// tree. It only reads objects and refs.
func Open(path string) (*Repo, error) {
	gitDir, common, err := locate(path)
	if err != nil {
		return nil, fmt.Errorf("repository %s: %w", path, err)
	}

	r := &Repo{path: path, gitDir: gitDir, common: common, objects: cache.NewObjectLRU(cacheSize)}
	if err := r.checkFormat(); err != nil {
		return nil, fmt.Errorf("repository %s: %w", path, err)
	}

	if err := r.reopen(); err != nil {
		return nil, fmt.Errorf("repository %s: %w", path, err)
	}

	return r, nil
}

// cacheSize limits the inflated objects in memory.
const cacheSize = 32 * cache.MiByte

// locate finds the directory with HEAD, and the one with objects and refs.
func locate(path string) (gitDir, common string, err error) {
	// The object storage does not accept paths with "..".
	if path, err = filepath.Abs(path); err != nil {
		return "", "", err
	}

	gitDir = filepath.Join(path, ".git")
	info, err := os.Stat(gitDir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		gitDir = path
	case err != nil:
		return "", "", err
	case !info.IsDir():
		// A linked work tree, or a submodule: the file has the path.
		target, err := oneLine(gitDir)
		if err != nil {
			return "", "", err
		}
		target, ok := strings.CutPrefix(target, "gitdir: ")
		if !ok {
			return "", "", errors.New(".git is a file without a gitdir line")
		}
		gitDir = from(path, target)
	}

	common = gitDir
	if target, err := oneLine(filepath.Join(gitDir, "commondir")); err == nil {
		common = from(gitDir, target)
	}
	if _, err := os.Stat(filepath.Join(gitDir, "HEAD")); err != nil {
		return "", "", notRepository(path)
	}
	if info, err := os.Stat(filepath.Join(common, "objects")); err != nil || !info.IsDir() {
		return "", "", notRepository(path)
	}

	return gitDir, common, nil
}

// notRepository is the error for a path that is not the root of a repository.
// If it is inside a work tree, that repository is not used automatically:
// whether the fleet is this directory or all of it would be a guess.
func notRepository(path string) error {
	for top := filepath.Dir(path); top != filepath.Dir(top); top = filepath.Dir(top) {
		if _, err := os.Stat(filepath.Join(top, ".git")); err != nil {
			continue
		}
		inside, err := filepath.Rel(top, path)
		if err != nil {
			break
		}
		return fmt.Errorf("not the root of a git repository; use -C %s, and --path %s if that is the fleet's directory", top, filepath.ToSlash(inside))
	}

	return errors.New("not a git repository")
}

func from(base, target string) string {
	if filepath.IsAbs(target) {
		return target
	}
	return filepath.Join(base, target)
}

func oneLine(path string) (string, error) {
	b, err := os.ReadFile(path)
	return strings.TrimRight(string(b), "\r\n"), err
}

// extension matches the config settings that change how objects or refs are
// stored.
var extension = regexp.MustCompile(`(?i)^\s*(objectformat|refstorage)\s*=\s*"?(\w+)`)

// checkFormat refuses repositories whose objects or refs would be misread.
func (r *Repo) checkFormat() error {
	f, err := os.Open(filepath.Join(r.common, "config"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}

	if err != nil {
		return err
	}
	defer f.Close()

	lines := bufio.NewScanner(f)
	for lines.Scan() {
		m := extension.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}

		switch name, value := strings.ToLower(m[1]), strings.ToLower(m[2]); {
		case name == "objectformat" && value != "sha1":
			return fmt.Errorf("object format %s is not supported, only sha1", value)
		case name == "refstorage" && value != "files":
			return fmt.Errorf("ref storage %s is not supported, only files", value)
		}
	}

	return lines.Err()
}

// reopen reads the lists of packs and shallow commits again, which go-git
// caches for the life of a storage. r.mu is held, or r is not shared yet.
func (r *Repo) reopen() error {
	for _, s := range r.stores {
		_ = s.Close() // only descriptors of packs that are read from
	}

	dirs, err := objectDirs(filepath.Join(r.common, "objects"))
	if err != nil {
		return err
	}

	r.stamp = r.stampOf(dirs)
	r.stores = nil
	for _, dir := range dirs {
		// The parent of the objects directory serves as a git directory.
		git := dotgit.New(osfs.New(filepath.Dir(dir), osfs.WithBoundOS()))
		r.stores = append(r.stores, newStore(git, r.objects))
	}

	var fs billy.Filesystem = osfs.New(r.gitDir, osfs.WithBoundOS())
	if r.common != r.gitDir {
		fs = dotgit.NewRepositoryFilesystem(fs, osfs.New(r.common, osfs.WithBoundOS()))
	}

	r.refs = filesystem.NewStorage(fs, r.objects)
	shallow, err := r.refs.Shallow()
	if err != nil {
		return fmt.Errorf("shallow commits: %w", err)
	}

	r.shallow = make(map[plumbing.Hash]bool, len(shallow))
	for _, h := range shallow {
		r.shallow[h] = true
	}

	return nil
}

// objectDirs is dir and its alternates.
func objectDirs(dir string) ([]string, error) {
	dirs := []string{dir}
	for i := 0; i < len(dirs); i++ {
		if len(dirs) > maxAlternates {
			return nil, fmt.Errorf("more than %d alternate object stores", maxAlternates)
		}

		b, err := os.ReadFile(filepath.Join(dirs[i], "info", "alternates"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}

		if err != nil {
			return nil, err
		}

		for line := range strings.Lines(string(b)) {
			line = strings.TrimRight(line, "\r\n")
			if line == "" || line[0] == '#' {
				continue
			}
			dirs = append(dirs, from(dirs[i], line))
		}
	}

	return dirs, nil
}

const maxAlternates = 32

// stampOf changes when packs are added or removed, or the clone is deepened.
// Loose objects and refs need no stamp: they are looked up one by one.
func (r *Repo) stampOf(dirs []string) string {
	var b strings.Builder
	for _, dir := range dirs {
		entries, _ := os.ReadDir(filepath.Join(dir, "pack"))
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".idx") {
				b.WriteString(e.Name())
			}
		}
	}

	if info, err := os.Stat(filepath.Join(r.common, "shallow")); err == nil {
		fmt.Fprint(&b, info.Size(), info.ModTime().UnixNano())
	}

	return b.String()
}

// ref reads a ref and follows symbolic ones.
func (r *Repo) ref(name plumbing.ReferenceName) (*plumbing.Reference, bool) {
	for range 5 {
		ref, err := r.refs.Reference(name)
		if err != nil {
			return nil, false
		}
		if ref.Type() != plumbing.SymbolicReference {
			return ref, true
		}
		name = ref.Target()
	}

	return nil, false
}

// DefaultBranch names the branch that changes are meant for. For a mirror it is
// the remote's HEAD. For a local repository it is the remote branch that
// origin/HEAD points to ("origin/main"), else main, else master, else the
// current branch. Resolve accepts the name.
func (r *Repo) DefaultBranch() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.remote.Load() == nil {
		if ref, err := r.refs.Reference("refs/remotes/origin/HEAD"); err == nil && ref.Type() == plumbing.SymbolicReference {
			if _, ok := r.ref(ref.Target()); ok {
				return ref.Target().Short(), nil
			}
		}
		for _, name := range []string{"main", "master"} {
			if _, ok := r.ref(plumbing.NewBranchReferenceName(name)); ok {
				return name, nil
			}
		}
	}

	head, err := r.refs.Reference(plumbing.HEAD)
	if err != nil {
		return "", fmt.Errorf("repository %s: HEAD: %w", r.path, err)
	}

	if head.Type() != plumbing.SymbolicReference {
		such := ""
		for _, name := range []string{"origin/main", "origin/master"} {
			if _, ok := r.ref(plumbing.ReferenceName("refs/remotes/" + name)); ok && such == "" {
				such = ", such as " + name
			}
		}
		return "", fmt.Errorf("repository %s: no default branch: HEAD is detached, and there is no main or master; specify one with --ref%s", r.path, such)
	}

	if _, ok := r.ref(head.Target()); !ok {
		return "", fmt.Errorf("repository %s: no default branch: %s has no commit yet", r.path, head.Target().Short())
	}

	return head.Target().Short(), nil
}

// HeadBranch is the branch that HEAD points to; "" if it is detached.
func (r *Repo) HeadBranch() string { return branchOf(filepath.Join(r.gitDir, "HEAD")) }

// Resolve returns the commit that a revision names: a branch, a tag, a remote
// branch (origin/x), a full or abbreviated hash, or HEAD, each optionally
// followed by ~N and ^N.
func (r *Repo) Resolve(rev string) (string, error) {
	name, steps, ok := splitRevision(rev)
	if !ok {
		return "", fmt.Errorf("revision %q: %w: only names and hashes with ~N and ^N are supported", rev, ErrUnknownRevision)
	}

	h, err := r.resolveName(name)
	if err != nil {
		return "", fmt.Errorf("revision %q: %w", rev, err)
	}

	c, err := r.peel(h)
	if err != nil {
		return "", fmt.Errorf("revision %q: %w", rev, err)
	}

	for _, s := range steps {
		for range s.generations {
			if s.parent > len(c.parents) {
				if r.isShallow(c.hash) {
					return "", fmt.Errorf("revision %q: %w", rev, &ShallowError{c.hash.String()})
				}
				return "", fmt.Errorf("revision %q: %w: %s has no parent %d", rev, ErrUnknownRevision, short(c.hash), s.parent)
			}

			if r.isShallow(c.hash) {
				return "", fmt.Errorf("revision %q: %w", rev, &ShallowError{c.hash.String()})
			}
			if c, err = r.commit(c.parents[s.parent-1]); err != nil {
				return "", fmt.Errorf("revision %q: %w", rev, err)
			}
		}
	}

	return c.hash.String(), nil
}

// step is one ~N (N generations of first parents) or ^N (the Nth parent).
type step struct{ generations, parent int }

var suffix = regexp.MustCompile(`[~^][0-9]{0,4}`)

func splitRevision(rev string) (name string, steps []step, ok bool) {
	at := strings.IndexAny(rev, "~^")
	if at < 0 {
		at = len(rev)
	}

	name, rest := rev[:at], rev[at:]
	if name == "" || strings.ContainsAny(name, "@{}:?*[\\ ") && name != "@" || strings.HasPrefix(name, "-") {
		return "", nil, false
	}

	if name == "@" {
		name = "HEAD"
	}

	for rest != "" {
		s := suffix.FindString(rest)
		if s == "" || !strings.HasPrefix(rest, s) {
			return "", nil, false
		}

		rest = rest[len(s):]
		n := 1
		if len(s) > 1 {
			n, _ = strconv.Atoi(s[1:])
		}

		switch {
		case s[0] == '~':
			steps = append(steps, step{n, 1})
		case n > 0: // ^0 is the commit itself
			steps = append(steps, step{1, n})
		}
	}

	return name, steps, true
}

func (r *Repo) resolveName(name string) (plumbing.Hash, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	stores := r.fresh()
	if b, err := hex.DecodeString(name); err == nil && len(b) == len(plumbing.Hash{}) {
		h := plumbing.NewHash(name)
		if !slices.ContainsFunc(stores, func(s *store) bool { return s.HasEncodedObject(h) == nil }) {
			return h, fmt.Errorf("%w: no such commit", ErrUnknownRevision)
		}
		return h, nil
	}

	if name == "HEAD" || strings.HasPrefix(name, "refs/") {
		ref, ok := r.ref(plumbing.ReferenceName(name))
		if !ok {
			return plumbing.ZeroHash, fmt.Errorf("%w: no such ref%s", ErrUnknownRevision, howToFetch(name))
		}
		return ref.Hash(), nil
	}

	branch, isBranch := r.ref(plumbing.NewBranchReferenceName(name))
	tag, isTag := r.ref(plumbing.NewTagReferenceName(name))
	switch {
	case isBranch && isTag:
		// git picks the tag with a warning; a fleet must not depend on a guess.
		return plumbing.ZeroHash, fmt.Errorf("%w: it is both a branch and a tag; use %s or %s", ErrUnknownRevision, branch.Name(), tag.Name())
	case isBranch:
		return branch.Hash(), nil
	case isTag:
		return tag.Hash(), nil
	}

	for _, format := range []string{"refs/remotes/%s", "refs/remotes/%s/HEAD", "refs/%s"} {
		if ref, ok := r.ref(plumbing.ReferenceName(fmt.Sprintf(format, name))); ok {
			return ref.Hash(), nil
		}
	}

	h, err := abbreviated(stores, name)
	if _, there := r.ref(plumbing.NewRemoteReferenceName("origin", name)); err != nil && there {
		return h, fmt.Errorf("%w; did you mean origin/%s?", err, name)
	}

	return h, err
}

// howToFetch is the command that gets a ref of a pull or merge request, which clones
// leave out.
func howToFetch(name string) string {
	if !strings.HasPrefix(name, "refs/pull/") && !strings.HasPrefix(name, "refs/merge-requests/") {
		return ""
	}
	return fmt.Sprintf("; run git fetch origin %s:%s", name, name)
}

// minAbbreviation is git's: a shorter prefix is not taken for a hash.
const minAbbreviation = 4

func abbreviated(stores []*store, prefix string) (plumbing.Hash, error) {
	prefix = strings.ToLower(prefix)
	even := prefix[:len(prefix)&^1]
	b, err := hex.DecodeString(even)
	if err != nil || len(prefix) < minAbbreviation || len(prefix) > 40 {
		return plumbing.ZeroHash, fmt.Errorf("%w: no such branch, tag or commit", ErrUnknownRevision)
	}

	var found []plumbing.Hash
	seen := map[plumbing.Hash]bool{}
	for _, s := range stores {
		hashes, err := s.HashesWithPrefix(b)
		if err != nil {
			return plumbing.ZeroHash, err
		}

		for _, h := range hashes {
			if !strings.HasPrefix(h.String(), prefix) || seen[h] {
				continue
			}
			seen[h] = true
			o, err := s.EncodedObject(plumbing.AnyObject, h)
			if err == nil && (o.Type() == plumbing.CommitObject || o.Type() == plumbing.TagObject) {
				found = append(found, h)
			}
		}
	}

	switch len(found) {
	case 0:
		return plumbing.ZeroHash, fmt.Errorf("%w: no such branch, tag or commit", ErrUnknownRevision)
	case 1:
		return found[0], nil
	}

	return plumbing.ZeroHash, fmt.Errorf("%w: ambiguous, %d commits start with it; use more digits", ErrUnknownRevision, len(found))
}

// peel follows annotated tags to their commit.
func (r *Repo) peel(h plumbing.Hash) (*commit, error) {
	for range 10 {
		kind, b, err := r.object(h)
		if err != nil {
			return nil, err
		}

		switch kind {
		case plumbing.CommitObject:
			return parseCommit(h, b)
		case plumbing.TagObject:
			target, _, _ := strings.Cut(strings.TrimPrefix(string(b), "object "), "\n")
			if !plumbing.IsHash(target) {
				return nil, fmt.Errorf("tag %s has no object", short(h))
			}
			h = plumbing.NewHash(target)
		default:
			return nil, fmt.Errorf("%w: %s is a %s, not a commit", ErrUnknownRevision, short(h), kind)
		}
	}

	return nil, fmt.Errorf("%w: a tag of a tag of a tag, ten deep", ErrUnknownRevision)
}

func (r *Repo) isShallow(h plumbing.Hash) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shallow[h]
}

func short(h plumbing.Hash) string { return h.String()[:8] }
