// SPDX-License-Identifier: Apache-2.0

// Package propagate makes every decision of fairlead and nothing else: no
// I/O, clock, randomness, logger or context.
//
// The fleet is a fold over the commits of one branch:
//
//	next := propagate.Step(state, commit)
//
// A Commit carries a fleet.Snapshot (what render made of one tree) or the
// reasons why there is none. A State holds, for each template, its Binding: who
// claims it, what is active, where it goes and what each cluster may run. Step
// never alters its arguments, and the same arguments give the same bytes.
//
// # Reading order
//
// What goes in and what comes out:
//
//   - commit.go: one commit (fold rule 1)
//   - state.go: State, Binding, Work, Content, Tombstone
//   - index.go: which policy may match which template
//
// One step goes through its stages, and writes the next state:
//
//   - step.go: the stages of a step, in their order (fold rules 2 and 3)
//   - cost.go: what a step may cost (decision 43)
//   - defect.go: a step that fails refuses its commit (decision 43)
//   - freeze.go: units that are broken keep their last good content (fold rule 3)
//   - mark.go: which templates a commit concerns
//   - bind.go: the marked templates, one after the other
//   - cycle.go: templates that require each other
//   - remove.go: the binding of a removed template
//   - tombstone.go: what was released and is not wanted any more
//   - moved.go: clusters that replicas hand to each other
//   - guard.go, hour.go, lastcopy.go, replaced.go: deletions that await
//     confirmation (fold rule 21)
//   - rewrite.go: a branch that was rewritten is one step (fold rule 5)
//
// One decision makes the binding of one template, and writes nothing:
//
//   - decision.go: the stages of a decision, in their order
//   - claim.go, preempt.go: which policy has the template (fold rules 11 and 14)
//   - activate.go: what is in effect, and what waits (fold rules 13 and 14)
//   - immediate.go: fields that act at once (fold rule 12)
//   - answer.go: what scripts say of a template
//   - observe.go, evict.go: what was seen of the members moves a workload (fold
//     rule 22)
//   - place.go: which clusters, with package schedule (fold rule 15)
//   - crd.go: an object needs the definition of its kind (fold rule 15)
//   - rebalance.go: workloads that a rebalancer names and no policy places
//   - depend.go: what is required beside an owner (fold rule 16)
//   - work.go, share.go, rendering.go: what each cluster gets, with package override
//     (fold rule 17)
//
// Readers show a state, or compare two, and change nothing:
//
//   - trace.go, reason.go, candidates.go: why a template is on a cluster, or not
//   - plan.go, cell.go, because.go, waiting.go, needednamespace.go: what a merge would
//     do
//   - changes.go: what a step did
//   - findings.go: what is worth saying about a state
//   - view.go, names.go, memberstatus.go: a state in Karmada's terms
//   - manifest.go, autoscale.go, status.go, reaches.go: what members are sent, and
//     how what is read from them is understood
//   - record.go: a state on disk, without its manifests (fold rules 7 and 17)
package propagate
