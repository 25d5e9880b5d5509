// SPDX-License-Identifier: Apache-2.0

package change

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/fairlead/fairlead/source"
)

// toWorkTree targets the work tree.
func (s *Session) toWorkTree() (base string, err error) {
	s.where = toWorkTree
	if s.tree == nil {
		if !s.opt.DryRun {
			return "", optionf("%s has no work tree: use --commit, --push or --dry-run", source.Redact(s.opt.Repo))
		}
		s.where = toNowhere
		return s.Resolve(s.opt.Ref)
	}
	head, err := s.Repo.Resolve("HEAD")
	if err != nil || s.opt.Ref == "" {
		return head, err
	}

	ref, err := s.Repo.Resolve(s.opt.Ref)
	switch {
	case err != nil:
		return "", err
	case ref == head:
		return head, nil
	case s.opt.DryRun:
		s.where = toNowhere
		return ref, nil
	}

	return "", optionf("--ref %s is not checked out in %s: use --commit, --push or --dry-run", s.opt.Ref, source.Redact(s.opt.Repo))
}

// toBranch targets a branch of a local repository.
func (s *Session) toBranch() (base string, err error) {
	s.where, s.branch = toBranch, s.opt.Ref
	switch {
	case s.Repo.Remote() != "":
		return "", optionf("%s is a remote repository: use --push or --dry-run", source.Redact(s.opt.Repo))
	case s.branch == "" && s.tree != nil:
		if s.branch = s.tree.Branch(); s.branch == "" {
			return "", optionf("no branch is checked out in %s: name one with --ref", source.Redact(s.opt.Repo))
		}
	case s.branch == "":
		if s.branch, err = s.Repo.DefaultBranch(); err != nil {
			return "", err
		}
	}

	if s.tree == nil || s.branch != s.tree.Branch() {
		if at := s.Repo.CheckedOut(s.branch); at != "" {
			return "", fmt.Errorf("branch %s is checked out at %s: edit it there, with -C", s.branch, at)
		}
		s.tree = nil
	}
	if base, err = s.Repo.Resolve("refs/heads/" + s.branch); err != nil {
		return "", fmt.Errorf("--commit: %s is not a branch of %s: %w", s.branch, source.Redact(s.opt.Repo), err)
	}

	return base, nil
}

// toRemote targets a branch of the remote, on top of the commits that it has.
func (s *Session) toRemote() (base string, err error) {
	s.where, s.tree, s.branch = toRemote, nil, s.opt.Push
	if base, err = s.Resolve(s.opt.Ref); err != nil {
		return "", err
	}

	known := "refs/remotes/origin/" + s.branch
	if s.Repo.Remote() != "" {
		known = "refs/heads/" + s.branch
	}
	there, err := s.Repo.Resolve(known)
	if errors.Is(err, source.ErrUnknownRevision) {
		return base, nil
	}
	if err != nil {
		return "", err
	}
	shared, err := s.Repo.MergeBase(base, there)
	if err != nil {
		return "", err
	}
	if shared == there {
		return base, nil // the branch is merged
	}

	s.note("branch %s already exists: the commit goes on top of it", s.branch)
	return there, nil
}

var noBranchName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// BranchName turns any text into the name of a branch.
func BranchName(name string) string {
	return strings.Trim(noBranchName.ReplaceAllString(name, "-"), "-")
}
