// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxLimits is for how many hooks it is remembered how often they were called.
const maxLimits = 4096

// limits limit the requests to each hook.
type limits struct {
	mu     sync.Mutex
	of     map[string]*rate.Limiter
	sparse time.Time // no limit is forgotten before
}

func newLimits() *limits { return &limits{of: map[string]*rate.Limiter{}} }

// allow reports whether a hook may be called now.
func (l *limits) allow(digest string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	limiter := l.of[digest]
	if limiter == nil {
		if len(l.of) >= maxLimits {
			l.forget(now)
		}
		if len(l.of) >= maxLimits {
			return false // all of them are busy
		}
		limiter = rate.NewLimiter(hookRate, hookBurst)
		l.of[digest] = limiter
	}
	return limiter.AllowN(now, 1)
}

// forget drops the limits that have recovered: they are as if never called.
func (l *limits) forget(now time.Time) {
	if now.Before(l.sparse) {
		return
	}
	l.sparse = now.Add(time.Second)
	for digest, limiter := range l.of {
		if limiter.TokensAt(now) >= hookBurst {
			delete(l.of, digest)
		}
	}
}
