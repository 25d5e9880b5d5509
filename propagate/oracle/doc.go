// SPDX-License-Identifier: Apache-2.0

// Package oracle is a second account of the fold: slow, obvious, and written
// from the rules alone. It reads the documents of a commit as plain maps and
// decides everything about everything in every step. It shares no code with
// package propagate, which is compared with it over random histories; only
// tests import it.
//
// It knows what the rules of a step need and no more: Deployments, and CloneSets
// for the kinds of other projects, their ConfigMaps, Namespaces and kinds of no
// meaning; placement by names, labels and taints; replicas by static weights; overrides of labels and by JSON
// pointers of one or two parts. There are no observations in it.
package oracle
