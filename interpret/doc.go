// SPDX-License-Identifier: Apache-2.0

// Package interpret says what the replicas, dependencies, health and status of a
// kind are. Of a kind that fairlead does not know, its owner says so in a script in
// the fleet repository.
//
// A script is a function of its object. It has no access to files, network,
// clock or randomness, walks tables in an order that depends only on their
// content, and always ends: its work is counted, not timed, so that it stops at
// the same place on every machine.
//
// Start with Interpreter, then Compile. budget.go says what is counted,
// rewrite.go and operators.go how; library.go, text.go and numbers.go are what
// a script can call. health.go, status.go and aggregate.go have the rules of
// Kubernetes' kinds. Kind is what is known of another project's: kinds.go says how,
// and each project has a file, from kruise.go to batch.go.
package interpret
