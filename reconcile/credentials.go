// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"time"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/source"
)

// askAgain is how long to keep credentials that a member rejects, before Members is
// called again for new ones.
const askAgain = 30 * time.Second

// refusing returns the clusters that reject our credentials and for which Members has
// not been called lately: there may be new ones by now.
func (l *Loop) refusing() map[string]bool {
	pause := askAgain
	if l.opt.Backoff.Max > 0 {
		pause = l.opt.Backoff.Max
	}
	names := map[string]bool{}
	for _, o := range l.dispatcher.Outcomes() {
		if errors.Is(o.Err, member.Unauthorized) && l.opt.Clock.Elapsed()-l.resolved[o.Cluster] >= pause {
			names[o.Cluster] = true
		}
	}

	return names
}

// SetAuth replaces the credentials of the repository, from the next fetch on. It may be
// called beside a Round.
func (l *Loop) SetAuth(auth source.Auth) { l.repo.SetAuth(auth) }
