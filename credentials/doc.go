// SPDX-License-Identifier: Apache-2.0

// Package credentials knows the layout of Secrets: which key has what, for a git
// repository, a proxy, a cluster and the signers of commits. They are Flux's, Karmada's
// and Cluster API's, so that a Secret which one of them uses serves here as well.
//
// It is given the content of a Secret, or of a directory with a file for each key, and a
// name to call it by, such as "Secret acme/fleet-git". It asks no API, and no error
// of it quotes a value.
package credentials
