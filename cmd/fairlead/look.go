// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/runtime/features"
	"github.com/spf13/pflag"

	"github.com/fairlead/fairlead/credentials"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/reconcile/checkpoint"
	"github.com/fairlead/fairlead/source"
)

// fleetFlags select the fleet, for every command that reads one.
type fleetFlags struct {
	repo, ref, path, auth string
}

func (f *fleetFlags) bind(flags *pflag.FlagSet) {
	flags.StringVarP(&f.repo, "repo", "C", ".", "local repository, or the URL of a remote one (https:// or ssh://); uncommitted files are not read")
	flags.StringVar(&f.ref, "ref", "", "branch to follow, or any revision for look commands (default: the repository's default branch)")
	flags.StringVar(&f.path, "path", ".", "directory of the fleet in the repository")
	flags.StringVar(&f.auth, "git-auth", "", "directory of files laid out as a Flux git Secret: username, password, bearerToken, ca.crt, tls.crt, tls.key, identity, known_hosts, githubAppID, …")
}

// credentials reads the files of --git-auth.
func (f *fleetFlags) credentials() (source.Auth, error) { return gitAuth("--git-auth", f.auth) }

// gitAuth reads the directory that a flag names; "" is none.
func gitAuth(flag, dir string) (source.Auth, error) {
	if dir == "" {
		return source.Auth{}, nil
	}
	files, err := credentials.ReadDir(os.DirFS(dir))
	if err != nil {
		return source.Auth{}, fmt.Errorf("%s %s: %w", flag, dir, err)
	}
	return credentials.Git(files, flag+" "+dir)
}

// open opens the repository; a remote one is mirrored under the state directory.
func (f *fleetFlags) open(ctx context.Context) (*source.Repo, error) {
	auth, err := f.credentials()
	if err != nil {
		return nil, err
	}

	dir := ""
	if _, err := os.Stat(f.repo); err != nil {
		if dir, err = checkpoint.DefaultDir(checkpoint.Origin{Repo: source.Redact(f.repo)}); err != nil {
			return nil, err
		}
	}
	repo, err := history.OpenRepo(ctx, f.repo, dir, auth)
	if err != nil {
		return nil, err // a mirror that is out of date is not an answer
	}

	return repo, nil
}

// lookFlags are the flags of the commands that read git alone.
type lookFlags struct {
	fleetFlags
	since   string
	noCache bool
	gates   features.FeatureGates
	flags   *pflag.FlagSet

	marker object.Marker // by what the fleet knows its objects, once it is folded
}

func (f *lookFlags) bind(flags *pflag.FlagSet) {
	f.fleetFlags.bind(flags)
	flags.StringVar(&f.since, "since", "", "commit at which the fold begins (default: the one with the trailer Fairlead-Begin, or the root)")
	flags.BoolVar(&f.noCache, "no-cache", false, "fold the whole history, without the cache of earlier commands")
	f.gates.BindFlags(flags)
	flags.Lookup("feature-gates").Usage = "feature `gates` that override fairlead.yaml, such as StaticPolicy=true; known: " + strings.Join(knownGates(), ", ")
	f.flags = flags
}

func (f *lookFlags) open(ctx context.Context) (*history.States, error) {
	if err := f.checkGates(); err != nil {
		return nil, err
	}
	repo, err := f.fleetFlags.open(ctx)
	if err != nil {
		return nil, err
	}

	l, err := f.states(repo)
	if err == nil {
		l.History.Progress = progressOf(ctx)
	}
	return l, err
}

// states is the history of the fleet in a repository.
func (f *lookFlags) states(repo *source.Repo) (*history.States, error) {
	l := &history.States{Repo: repo, History: history.New(repo, f.path)}
	l.History.Gates = f.setGates()
	if f.since != "" {
		var err error
		if l.Since, err = repo.Resolve(f.since); err != nil {
			return nil, err
		}
	}
	if dir, err := history.DefaultCacheDir(); err == nil && !f.noCache {
		l.Cache = history.NewCache(dir, f.path, l.Since, l.History.Gates)
		l.Cache.Recalls = true
		collectLess()
	}

	return l, nil
}

// folded opens the fleet and folds its history up to --ref.
func (f *lookFlags) folded(ctx context.Context) (head string, state propagate.State, err error) {
	l, err := f.open(ctx)
	if err != nil {
		return "", state, err
	}
	if head, err = l.Resolve(f.ref); err != nil {
		return "", state, err
	}

	state, err = l.At(head)
	if state.Snapshot == nil {
		state.Snapshot = &fleet.Snapshot{}
	}
	f.marker = l.MarkerOf(&state)

	return head, state, err
}

// checkGates refuses gates that do not exist.
func (f *lookFlags) checkGates() error {
	if err := f.gates.SupportedFeatures(fleet.Gates()); err != nil {
		return usagef("--feature-gates: %w; known: %s", err, strings.Join(knownGates(), ", "))
	}
	return nil
}

func knownGates() []string { return slices.Sorted(maps.Keys(fleet.Gates())) }

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

// warn reports on stderr that the head is not what is printed (fold rule 4), or
// not in full.
func warn(stderr io.Writer, s *propagate.State) {
	if frozen := s.FrozenUnits(); len(frozen) > 0 {
		printable.Fprintf(stderr, "fairlead: commit %s is shown, but %s: %s; 'fairlead validate' says why\n",
			source.Short(s.Accepted), frozenUnits(frozen), strings.Join(frozen, ", "))
	}
	r := s.Refusal
	if r == nil {
		return
	}

	verdict := "is refused"
	if r.Guard != nil {
		verdict = "awaits confirmation"
	}
	if s.Accepted == "" {
		printable.Fprintf(stderr, "fairlead: commit %s %s and none before it was accepted, so nothing is shown; 'fairlead validate' says why; %s\n",
			source.Short(r.Commit), verdict, history.HowToBegin)
		return
	}
	printable.Fprintf(stderr, "fairlead: commit %s %s, showing %s; 'fairlead validate' says why\n", source.Short(r.Commit), verdict, source.Short(s.Accepted))
}

// mustNotHaveArgs is for commands without arguments.
var mustNotHaveArgs = arguments(0, 0)
