// SPDX-License-Identifier: Apache-2.0

// Package checkpoint keeps what a run knows across restarts in one file: the last
// folded state, and the inventory of each member as dispatch last saw it.
//
// The file saves work and decides nothing. A run without one, or with a damaged one,
// folds the history again and lists its members. A file of another fleet is refused
// ([ForeignError]), because its inventories would name objects that are not this
// fleet's to delete.
package checkpoint
