// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"time"

	"github.com/fairlead/fairlead/dispatch"
)

// askAgain is how long a member that does not accept our credentials keeps
// those that it has, before Members is asked whether there are others.
const askAgain = 30 * time.Second

// refusing are the clusters that do not accept our credentials, of which
// Members has not been asked lately: there may be others by now.
func (l *Loop) refusing() map[string]bool {
	pause := askAgain
	if l.opt.Backoff.Max > 0 {
		pause = l.opt.Backoff.Max
	}
	names := map[string]bool{}
	for _, o := range l.dispatcher.Outcomes() {
		if errors.Is(o.Err, dispatch.Unauthorized) && time.Since(l.met[o.Cluster]) >= pause {
			names[o.Cluster] = true
		}
	}
	return names
}
