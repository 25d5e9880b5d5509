// SPDX-License-Identifier: Apache-2.0

// Package interpret knows kinds that fairlead does not: what their owner says
// about replicas, dependencies and health in a script in the fleet repository.
//
// A script is a function of the object it is given. It reaches no file,
// network, clock or random source; its tables are walked in an order that
// follows from their content; and it ends: what it does is counted, not timed,
// so the same script stops at the same place on every machine.
//
// Start at Interpreter, then Compile. budget.go says what is counted,
// rewrite.go and operators.go how, library.go, text.go and numbers.go what a
// script can call. health.go has the rules for the kinds that Kubernetes
// brings.
package interpret
