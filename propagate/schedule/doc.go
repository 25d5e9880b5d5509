// SPDX-License-Identifier: Apache-2.0

// Package schedule chooses clusters for one workload and shares its replicas
// between them, with the arithmetic of Karmada's scheduler (digest §4).
//
// It is called with values and returns values: Select filters, Divide shares.
package schedule
