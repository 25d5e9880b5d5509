// SPDX-License-Identifier: Apache-2.0

// Package plan holds what a change does to every cluster, as reviewers read it.
//
// [New] makes a [Plan] of what package propagate compared; text and markdown are
// functions beside the value. Its JSON is a contract: within a major of FormatVersion
// fields are only added. Nothing here reads a clock, a flag or a terminal.
package plan
