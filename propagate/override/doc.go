// SPDX-License-Identifier: Apache-2.0

// Package override edits a manifest for one cluster with the overriders of one
// rule (digest §5.5). Apply is a pure function: it never modifies its
// arguments.
package override
