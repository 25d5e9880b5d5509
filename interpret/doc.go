// SPDX-License-Identifier: Apache-2.0

// Package interpret handles kinds that fairlead does not know: their owner says
// in a script in the fleet repository what their replicas, dependencies and
// health are.
//
// A script is a function of its object. It has no access to files, network,
// clock or randomness, walks tables in an order that depends only on their
// content, and always ends: its work is counted, not timed, so that it stops at
// the same place on every machine.
//
// Start with Interpreter, then Compile. budget.go says what is counted,
// rewrite.go and operators.go how; library.go, text.go and numbers.go are what
// a script can call. health.go has the rules of the built-in kinds.
package interpret
