// SPDX-License-Identifier: Apache-2.0

// Package lease decides which of several replicas dispatches to which clusters
// (docs/design/0031-shards.md).
//
// Every replica folds the same history. The clusters are divided into a fixed number
// of shards ([ShardOf]); each shard has a Kubernetes Lease, and whoever holds that may
// write to the clusters of the shard. Who should hold it is the same function
// everywhere ([Assign]) of the replicas that live; who may is the Lease alone.
//
// A [Machine] is the part of one replica. It is given events and the time, and says
// which requests to send and what to tell the loop. It has no clock, no goroutine and
// no I/O: package hub runs it on an API server, and the simulation in the tests runs
// many of them on clocks that differ.
//
// # Why two never write
//
// Every time is counted on the clock of the process that counts it. With the
// [DefaultRules]:
//
//   - A holder writes for 25 s after the *start* of its last successful renewal, so
//     what the renewal took makes its time shorter, never longer. A write has 10 s.
//     So nothing of it is on the wire 35 s after that start, on its clock.
//   - A candidate sees a renewal after it has begun. It takes a Lease that it has seen
//     unchanged for 40 s, and its gate opens 3 s later (Settle): 43 s, on its clock.
//   - 43/35 = 1.228: one clock may run so much faster than the other. Two clocks that
//     are each right to 10 % differ by 1.1/0.9 = 1.222. Without Settle it would be
//     40/35 = 1.143, right to 6.6 % each.
//   - The API server refuses an update of a version that is not the present one. So a
//     view that is late, a request that arrives late and an answer that is lost do no
//     harm: a holder counts only renewals whose answer it has, and reads again after
//     all others.
//   - A shard that is given away is drained first: the gate shuts, and the Lease is
//     given back when nothing is in flight, or after the 10 s that a write has.
//
// Shards of two numbers of shards are not the same clusters, and there is no version
// that two Leases share. So who takes a shard lists all Leases once more before its
// gate opens: of two that take shards of two numbers at once, one at least sees the
// other and gives back. And a Lease of another number that has expired is cleared
// before anything is taken, because its holder could renew it otherwise.
//
// # Why nobody goes back to an older commit
//
// Two writers at one commit write the same bytes. A replica that lags rolls a cluster
// back. So the Lease says what the newest commit is of which something may have been
// sent; it does so before anything is (Machine.Advance), and the gate permits that one
// commit and no other. Nobody takes a shard who has not folded that commit. If it is
// not on the branch after a fetch that began later than the commit was seen, the branch
// was rewritten: then the gate permits the head alone. This is true of a server
// that answers each fetch with what has been pushed before it; a mirror that lags may
// not be followed by several replicas.
//
// # When somebody holds it
//
// The replica that should have a shard takes it when it is given back or has expired.
// One that lives may be unable to: after 60 s anybody takes it, by rank, and keeps it
// for five minutes if the replicas stay the same, or it would go back to who cannot
// take it. Shards move when the replicas were the same for 15 s, four in 10 s, and
// never to an older engine. So a shard has a holder 62 s after the last one has died, as
// the one that takes it counts them, while one lives that has folded all that was sent
// and reaches the Leases.
//
// # What it does not hold
//
//   - A process that is stopped between the check of the gate and the write to the
//     socket writes when it goes on. Nothing in the process can prevent that: the marks
//     on the member's objects must.
//   - A Lease that is deleted by hand counts as held for another 43 s by every replica
//     that has seen it. A replica that starts after somebody deleted all Leases of the
//     fleet has not.
//   - Leases of former numbers of shards stay, given back, with what was sent.
package lease
