// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/features"
	"github.com/spf13/pflag"

	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source"
)

// fleetFlags say which fleet, for every command that reads one.
type fleetFlags struct {
	repo, ref, path, auth string
}

func (f *fleetFlags) bind(flags *pflag.FlagSet) {
	flags.StringVarP(&f.repo, "repo", "C", ".", "local repository, or its URL (https:// or ssh://); a work tree is never read")
	flags.StringVar(&f.ref, "ref", "", "branch to follow, or for look commands any revision (default: the repository's default branch)")
	flags.StringVar(&f.path, "path", ".", "directory of the fleet inside the repository")
	flags.StringVar(&f.auth, "git-auth", "", "directory of files laid out as a Flux git Secret: username, password, bearerToken, ca.crt, identity, known_hosts")
}

// credentials reads the files of --git-auth.
func (f *fleetFlags) credentials() (source.Auth, error) { return credentials("--git-auth", f.auth) }

// credentials reads the files of a directory that a flag names. Their content
// is never printed.
func credentials(flag, dir string) (source.Auth, error) {
	var auth source.Auth
	if dir == "" {
		return auth, nil
	}
	var username, password, bearer []byte
	for name, to := range map[string]*[]byte{
		"username": &username, "password": &password, "bearerToken": &bearer, "ca.crt": &auth.CA,
		"identity": &auth.Identity, "known_hosts": &auth.KnownHosts,
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return auth, fmt.Errorf("%s: %w", flag, err)
		}
		*to = b
	}
	auth.Username, auth.BearerToken = trimmed(username), trimmed(bearer)
	if auth.Identity != nil {
		auth.IdentityPassword = []byte(trimmed(password))
	} else {
		auth.Password = trimmed(password)
	}
	return auth, nil
}

// open opens the repository; a remote one is mirrored under the state directory.
func (f *fleetFlags) open(ctx context.Context) (*source.Repo, error) {
	auth, err := f.credentials()
	if err != nil {
		return nil, err
	}
	dir := ""
	if _, err := os.Stat(f.repo); err != nil {
		if dir, err = reconcile.DefaultStateDir(reconcile.Origin{Repo: f.repo}); err != nil {
			return nil, err
		}
	}
	repo, err := reconcile.OpenRepo(ctx, f.repo, dir, auth)
	if err != nil {
		return nil, err // an old mirror is not what was asked for
	}
	return repo, nil
}

// lookFlags are those of the commands that read git alone.
type lookFlags struct {
	fleetFlags
	since   string
	noCache bool
	gates   features.FeatureGates
	flags   *pflag.FlagSet
}

func (f *lookFlags) bind(flags *pflag.FlagSet) {
	f.fleetFlags.bind(flags)
	flags.StringVar(&f.since, "since", "", "commit that the fold begins at (default: the one with the trailer Fairlead-Begin, or the root)")
	flags.BoolVar(&f.noCache, "no-cache", false, "fold the whole history, whatever earlier looks have kept of it")
	f.gates.BindFlags(flags)
	flags.Lookup("feature-gates").Usage = "look with these `gates`, such as StaticPolicy=true, whatever fairlead.yaml says; known: " + strings.Join(knownGates(), ", ")
	f.flags = flags
}

// look is an opened fleet.
type look struct {
	repo    *source.Repo
	history *reconcile.History
	since   string           // a commit, or "" for the usual beginning
	cache   *reconcile.Cache // nil without one
}

func (f *lookFlags) open(ctx context.Context) (*look, error) {
	if err := f.checkGates(); err != nil {
		return nil, err
	}
	repo, err := f.fleetFlags.open(ctx)
	if err != nil {
		return nil, err
	}
	l := &look{repo: repo, history: reconcile.NewHistory(repo, f.path)}
	l.history.Gates = f.setGates()
	if f.since != "" {
		if l.since, err = repo.Resolve(f.since); err != nil {
			return nil, err
		}
	}
	if dir, err := reconcile.DefaultCacheDir(); err == nil && !f.noCache {
		l.cache = reconcile.NewCache(dir, f.path, l.since, l.history.Gates)
	}
	return l, nil
}

// folded opens the fleet and folds its history up to --ref.
func (f *lookFlags) folded(ctx context.Context) (head string, state propagate.State, err error) {
	l, err := f.open(ctx)
	if err != nil {
		return "", state, err
	}
	if head, err = l.resolve(f.ref); err != nil {
		return "", state, err
	}
	state, err = l.at(head)
	if state.Snapshot == nil {
		state.Snapshot = &propagate.Snapshot{}
	}
	return head, state, err
}

// checkGates refuses gates that do not exist.
func (f *lookFlags) checkGates() error {
	if err := f.gates.SupportedFeatures(propagate.Gates()); err != nil {
		return usagef("--feature-gates: %w; known: %s", err, strings.Join(knownGates(), ", "))
	}
	return nil
}

func knownGates() []string { return slices.Sorted(maps.Keys(propagate.Gates())) }

// setGates are the gates that the flag names, and no others.
func (f *lookFlags) setGates() map[string]bool {
	set := map[string]bool{}
	for pair := range strings.SplitSeq(f.flags.Lookup("feature-gates").Value.String(), ",") {
		name, _, named := strings.Cut(strings.TrimSpace(pair), "=")
		if on, err := features.Enabled(name); named && err == nil {
			set[name] = on
		}
	}
	return set
}

// resolve is the commit of a revision, or of the default branch.
func (l *look) resolve(rev string) (string, error) {
	if rev == "" {
		branch, err := l.repo.DefaultBranch()
		if err != nil {
			return "", err
		}
		rev = branch
	}
	return l.repo.Resolve(rev)
}

// worthKeeping is how long a fold takes that the next look should not repeat.
// The tests keep every one.
var worthKeeping = 200 * time.Millisecond

// at folds the history up to a commit, from the nearest one whose state an
// earlier look has kept.
func (l *look) at(head string) (propagate.State, error) {
	began := time.Now()
	from := l.kept(head)
	if from.Commit == head {
		return from.State, nil
	}
	commits, err := l.commits(from.Commit, head)
	if err == nil && !from.Begun && from.Commit != "" && l.since == "" && reconcile.Begins(commits) {
		from = reconcile.Folded{} // the fold begins after what was kept
		commits, err = l.commits("", head)
	}
	if err != nil {
		return propagate.State{}, err
	}
	folded, kept := 0, began
	from.State, err = l.history.Fold(from.State, commits, func(c *source.Commit, next propagate.State) error {
		folded++
		// Those on the way serve a look at what was before, such as a plan's base.
		if now := time.Now(); now.Sub(kept) >= keepEvery && l.cache != nil {
			l.cache.Keep(&reconcile.Folded{State: next, Begun: from.Begun || reconcile.Begins(commits[:folded])})
			kept = now
		}
		return nil
	})
	if err != nil {
		return from.State, err
	}
	if l.cache != nil && from.Commit == head && time.Since(began) >= worthKeeping {
		l.cache.Keep(&reconcile.Folded{State: from.State, Begun: from.Begun || reconcile.Begins(commits)})
	}
	return from.State, nil
}

// keepEvery is how much folding is between two states that are kept on the way.
const keepEvery = 2 * time.Second

// kept is the state nearest to head that is in the cache; zero when none is.
func (l *look) kept(head string) reconcile.Folded {
	if l.cache == nil {
		return reconcile.Folded{}
	}
	commit, err := l.repo.Nearest(head, l.cache.Has)
	if err != nil || commit == "" {
		return reconcile.Folded{}
	}
	f, _ := l.cache.Load(commit, l.history)
	return f
}

// commits are those after one, or from the beginning of the fold, up to head.
func (l *look) commits(after, head string) ([]*source.Commit, error) {
	if l.since == "" || after != "" {
		return l.history.Commits(after, head)
	}
	first, err := l.repo.Commit(l.since)
	if err != nil {
		return nil, err
	}
	rest, err := l.repo.History(l.since, head)
	if err != nil {
		return nil, err
	}
	return slices.Insert(rest, 0, first), nil
}

// warn says on stderr that what is printed is not the head (fold rule 4), or
// not all of it.
func warn(stderr io.Writer, s *propagate.State) {
	if frozen := s.FrozenUnits(); len(frozen) > 0 {
		fmt.Fprintf(stderr, "fairlead: commit %s is shown, but %s: %s; 'fairlead validate' says why\n",
			short(s.Accepted), frozenUnits(frozen), strings.Join(frozen, ", "))
	}
	r := s.Refusal
	if r == nil {
		return
	}
	verdict := "refused"
	if r.Guard != nil {
		verdict = "held"
	}
	fmt.Fprintf(stderr, "fairlead: commit %s is %s, showing %s; 'fairlead validate' says why\n",
		short(r.Commit), verdict, cmp.Or(short(s.Accepted), "the fleet before the first commit"))
}

func short(hash string) string { return hash[:min(len(hash), 7)] }

func trimmed(b []byte) string {
	for len(b) > 0 && (b[len(b)-1] == '\n' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return string(b)
}

// mustNotHaveArgs is for commands without arguments.
var mustNotHaveArgs = arguments(0, 0)
