// SPDX-License-Identifier: Apache-2.0

// Package schedule chooses clusters for one workload and shares its replicas
// between them, with the arithmetic of Karmada's scheduler (digest §4).
//
// It is called with values and returns values. Placement.Schedule tries the
// affinity groups (affinity.go); in each of them it filters the clusters
// (filter.go), asks what they can hold (estimate.go), chooses among them
// (spread.go) and divides the replicas (divide.go, webster.go).
package schedule
