// SPDX-License-Identifier: Apache-2.0

// Package eventlog keeps the record of what a run did, as JSON lines in the
// state directory beside the checkpoint (docs/design/0011-events.md). People
// read it; nothing is decided by it.
package eventlog
