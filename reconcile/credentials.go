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

// Reconnect has Members called again in the next round for clusters whose credentials
// may be new, or for all if none is named. It may be called at any time.
func (l *Loop) Reconnect(clusters ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(clusters) == 0 {
		l.again[""] = true
	}
	for _, name := range clusters {
		l.again[name] = true
	}
}

// takeReconnects returns the clusters that Reconnect named.
func (l *Loop) takeReconnects() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	again := l.again
	l.again = map[string]bool{}
	if again[""] {
		for name := range l.members {
			again[name] = true
		}
	}
	return again
}

// SetAuth replaces the credentials of the repository, from the next fetch on. It may be
// called beside a Round.
func (l *Loop) SetAuth(auth source.Auth) { l.repo.SetAuth(auth) }
