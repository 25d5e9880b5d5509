// SPDX-License-Identifier: Apache-2.0

package source

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Revisions names the branches and the tags, as Resolve accepts them, and HEAD.
func (r *Repo) Revisions() ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	refs, err := r.refs.IterReferences()
	if err != nil {
		return nil, err
	}
	names := []string{"HEAD"}
	err = refs.ForEach(func(ref *plumbing.Reference) error {
		if n := ref.Name(); (n.IsBranch() || n.IsTag() || n.IsRemote()) && !strings.HasSuffix(n.String(), "/HEAD") {
			names = append(names, n.Short())
		}
		return nil
	})
	slices.Sort(names)
	return slices.Compact(names), err
}
