// SPDX-License-Identifier: Apache-2.0

package change

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fairlead/fairlead/source"
)

// Write writes the edited files to the session's target: the work tree, a branch,
// or a branch of the remote. done is a message that says which.
func (s *Session) Write(ctx context.Context, p *Preview) (done string, err error) {
	files := map[string][]byte{}
	for name, text := range p.files {
		files[s.inRepository(name)] = text
	}

	if s.where == toWorkTree {
		for name := range p.files {
			if s.created[name] != nil {
				if err := s.vacant(name); err != nil {
					return "", err
				}
				continue
			}
			if there, err := s.tree.Read(s.inRepository(name)); err != nil || !bytes.Equal(there, s.read[name]) && !source.SameButLineEnds(there, s.read[name]) {
				return "", errors.Join(err, fmt.Errorf("%s has changed in the meantime; nothing is written", s.inRepository(name)))
			}
		}
		if err := s.tree.Write(files); err != nil {
			return "", err
		}
		return "written to the work tree, not committed", nil
	}
	message := p.edit.subject + "\n"
	if len(p.edit.trailers) > 0 {
		message += "\n" + strings.Join(p.edit.trailers, "\n") + "\n"
	}
	e := source.Edit{Branch: s.branch, On: s.base.Hash, Message: message, Author: p.author.Name, Mail: p.author.Mail, When: p.author.When, Files: files}
	var hash string
	switch {
	case s.where == toRemote:
		if hash, err = s.Repo.Draft(s.base.Hash, e); err != nil {
			return "", err
		}
		auth, err := s.opt.Credentials()
		if err != nil {
			return "", err
		}
		to, err := s.Repo.Push(ctx, hash, s.branch, auth)
		if err != nil {
			return "", fmt.Errorf("nothing is pushed: %w", err)
		}
		return fmt.Sprintf("pushed %s to branch %s of %s", source.Short(hash), s.branch, to), nil
	case s.tree != nil:
		hash, err = s.tree.Commit(e)
	default:
		hash, err = s.Repo.Apply(e)
	}

	var uncommitted *source.UncommittedError
	switch {
	case errors.As(err, &uncommitted):
		return "", fmt.Errorf("nothing is committed: %w; commit or stash that first", err)
	case err != nil && hash == "":
		return "", fmt.Errorf("nothing is committed: %w", err)
	case err != nil:
		return "", fmt.Errorf("committed %s on branch %s, but git's index is not up to date: %w; 'git reset' updates it", source.Short(hash), s.branch, err)
	}

	return fmt.Sprintf("committed %s on branch %s (not pushed)", source.Short(hash), s.branch), nil
}
