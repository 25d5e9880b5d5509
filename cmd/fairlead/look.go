// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/runtime/features"
	"github.com/spf13/cobra"
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

// credentials reads the files of --git-auth. Their content is never printed.
func (f *fleetFlags) credentials() (source.Auth, error) {
	var auth source.Auth
	if f.auth == "" {
		return auth, nil
	}
	var username, password, bearer []byte
	for name, to := range map[string]*[]byte{
		"username": &username, "password": &password, "bearerToken": &bearer, "ca.crt": &auth.CA,
		"identity": &auth.Identity, "known_hosts": &auth.KnownHosts,
	} {
		b, err := os.ReadFile(filepath.Join(f.auth, name))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return auth, fmt.Errorf("--git-auth: %w", err)
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
	since string
	gates features.FeatureGates
	flags *pflag.FlagSet
}

func (f *lookFlags) bind(flags *pflag.FlagSet) {
	f.fleetFlags.bind(flags)
	flags.StringVar(&f.since, "since", "", "commit that the fold begins at (default: the one with the trailer Fairlead-Begin, or the root)")
	f.gates.BindFlags(flags)
	f.flags = flags
}

// look is an opened fleet.
type look struct {
	repo    *source.Repo
	history *reconcile.History
	since   string
}

func (f *lookFlags) open(ctx context.Context) (*look, error) {
	if err := f.checkGates(); err != nil {
		return nil, err
	}
	repo, err := f.fleetFlags.open(ctx)
	if err != nil {
		return nil, err
	}
	l := &look{repo: repo, history: reconcile.NewHistory(repo, f.path), since: f.since}
	l.history.Gates = f.setGates()
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
		return &usageError{err}
	}
	return nil
}

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

// at folds the history up to a commit.
func (l *look) at(head string) (propagate.State, error) {
	commits, err := l.commits(head)
	if err != nil {
		return propagate.State{}, err
	}
	return l.history.Fold(propagate.State{}, commits, nil)
}

func (l *look) commits(head string) ([]*source.Commit, error) {
	if l.since == "" {
		return l.history.Commits("", head)
	}
	begin, err := l.repo.Resolve(l.since)
	if err != nil {
		return nil, err
	}
	first, err := l.repo.Commit(begin)
	if err != nil {
		return nil, err
	}
	after, err := l.repo.History(begin, head)
	if err != nil {
		return nil, err
	}
	return slices.Insert(after, 0, first), nil
}

// warnRefused says on stderr that what is printed is not the head (fold rule 4).
func warnRefused(stderr io.Writer, s *propagate.State) {
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
var mustNotHaveArgs = arguments(cobra.NoArgs)
