// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"os"
	"path/filepath"

	"github.com/fairlead/fairlead/source"
)

// OpenRepo opens a local repository in place, or the mirror of a remote one under
// stateDir. If the remote of an existing mirror does not answer, it returns both the
// repository and the error.
func OpenRepo(ctx context.Context, repo, stateDir string, auth source.Auth) (*source.Repo, error) {
	if _, err := os.Stat(repo); err == nil {
		return source.Open(repo)
	}
	return source.Clone(ctx, filepath.Join(stateDir, "mirror"), repo, auth)
}
