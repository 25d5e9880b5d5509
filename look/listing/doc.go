// SPDX-License-Identifier: Apache-2.0

// Package listing lists what `get` shows: the nouns of the fleet from a state, and any
// resource of Kubernetes as the clusters have it.
package listing
