// SPDX-License-Identifier: Apache-2.0

// Package status compares what members have with what a state wants there: one
// [Cell] for each object and cluster.
//
// [Inspect] reads from one member what it has, with nothing but the marks on its
// objects to go by. [Cells] compares the answers with a state, and [Lag] counts how
// many commits a cell is behind. [Fleet] does all of it for a fleet, repeatedly, and
// [Wait] does it until the clusters have arrived. [Drift] and [HeldChanges] compare
// objects field by field.
//
// The package reads and never writes. The cells of a member that gives no answer are
// [Unknown], which is neither healthy nor gone.
package status
