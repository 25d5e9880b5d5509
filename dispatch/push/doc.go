// SPDX-License-Identifier: Apache-2.0

// Package push reaches clusters through their Kubernetes API.
//
// New is a member that dispatch brings to what the fleet wants, by server-side
// apply; Reader asks a cluster what it runs, for people who look; Contexts are
// the credentials of both. Drift and Changes compare manifests by the schema of
// their kinds.
//
// The package owns client-go. It speaks HTTP itself where that is cheaper, and
// trusts a member neither with our memory nor with our time.
package push
