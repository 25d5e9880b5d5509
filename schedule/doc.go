// SPDX-License-Identifier: Apache-2.0

// Package schedule chooses clusters for one workload and divides its replicas
// among them, with the arithmetic of Karmada's scheduler (digest §4).
//
// Everything is a function of values. Placement.Schedule tries the affinity
// groups (affinity.go). In each it filters the clusters (filter.go), estimates
// their capacity (estimate.go), chooses among them (spread.go) and divides the
// replicas (divide.go, webster.go).
package schedule
