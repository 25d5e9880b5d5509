// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"context"
	"fmt"
)

// OpenRepository returns the repository of a target, without a pull request.
func OpenRepository(ctx context.Context, t Target, token string) (Repository, error) {
	t.Pull, t.Branch = 0, ""
	return Open(ctx, t, token)
}

// listPulls goes through the pages of a list of pull requests until it has as many as it
// may. A pull request that moves to an earlier page meanwhile is seen at the next time.
func listPulls(most int, read func(page int) (some []OpenPull, next int, err error)) (open []OpenPull, more bool, err error) {
	seen := map[int64]bool{}
	for page, pages := 1, 0; page != 0; pages++ {
		if pages == mostPages {
			return open, true, nil
		}
		some, next, err := read(page)
		if err != nil {
			return nil, false, fmt.Errorf("the open pull requests cannot be read: %w", bare(err))
		}
		for _, p := range some {
			if !p.isSound() || seen[p.Number] {
				continue
			}
			if len(open) == most {
				return open, true, nil
			}
			seen[p.Number] = true
			open = append(open, p)
		}
		page = next
	}
	return open, false, nil
}

// ShowStatus writes a status of a commit, unless the commit has it.
func ShowStatus(ctx context.Context, r Repository, commit string, s Status) error {
	s.Description = shortened(s.Description)
	if err := repeat(ctx, func() error { return setStatus(ctx, r, commit, s) }); err != nil {
		return because("the commit status cannot be written", err)
	}
	return nil
}

// ScopedContext is the name of the status of a plan under a scope.
func ScopedContext(scope string) string {
	if scope == "" {
		return StatusContext
	}
	return StatusContext + "/" + cutTo(oneLine(scope), MostScope)
}
