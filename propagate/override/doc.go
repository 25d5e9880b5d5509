// SPDX-License-Identifier: Apache-2.0

// Package override edits a manifest for one cluster with the overriders of one
// rule (digest §5.5). It takes values and returns values: Apply never alters
// the object that it is given.
package override
