// SPDX-License-Identifier: Apache-2.0

package dispatch

import "k8s.io/client-go/rest"

// Push is a member behind a Kubernetes API. Nothing is requested until it is
// used.
func Push(cfg *rest.Config) (Member, error) { return nil, nil }
