// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"os"
	"path/filepath"

	"github.com/fairlead/fairlead/source"
)

// OpenRepo opens a local repository in place, or a mirror of a remote one
// under stateDir. When a mirror is there and its remote does not answer, both
// the repository and the error are returned.
func OpenRepo(ctx context.Context, repo, stateDir string, auth source.Auth) (*source.Repo, error) {
	if _, err := os.Stat(repo); err == nil {
		return source.Open(repo)
	}
	return source.Clone(ctx, filepath.Join(stateDir, "mirror"), repo, auth)
}
