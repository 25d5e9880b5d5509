// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"time"

	"k8s.io/client-go/rest"
)

// PushListening is Push with other times than usual.
func PushListening(cfg *rest.Config, dial, ping, pong time.Duration) (Member, error) {
	return newPush(cfg, silence{dial, ping, pong})
}
