// SPDX-License-Identifier: Apache-2.0

// Package propagate makes every decision of fairlead and nothing else: no
// I/O, clock, randomness, logger or context.
//
// The fleet is a fold over the commits of one branch:
//
//	next := propagate.Step(state, commit)
//
// A Commit carries a Snapshot (what render made of one tree) or the reasons
// why there is none. A State holds, for each template, its Binding: who claims
// it, what is active, where it goes and what each cluster may run. Step never
// alters its arguments, and the same arguments give the same bytes.
//
// Read step.go first; it names the stages in their order and each stage has a
// file: claim.go and preempt.go, activate.go, brakes.go, place.go with package
// schedule, depend.go, work.go and override.go with package override,
// depart.go, guard.go. view.go shows a State in Karmada's terms, plan.go
// compares two, record.go keeps one without its manifests.
package propagate
