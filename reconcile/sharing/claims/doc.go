// SPDX-License-Identifier: Apache-2.0

// Package claims has no cluster served under two names by two replicas. A [Registry] is the
// part of one replica: it is asked before a cluster is sent anything, when the UID of its
// namespace kube-system is known, and says whether another name has that cluster.
//
// Each shard has a ConfigMap that says which member each of its clusters is. Only the holder
// of the shard writes to it, or to that of a former number of shards.
//
//	data:
//	  eu-1: 6f1c…           # a record: eu-1 is that cluster, and no other name is
//	  eu-2: 9d03… pending   # eu-2 asks for that one
//
// # Why there are never two
//
// A claim becomes a record in three steps: it is written as pending; after that was
// acknowledged the ConfigMaps of all shards are listed as they are; and if none has the
// cluster under another name, pending or recorded, it is written as a record. Of two names
// that ask at once, the one whose list began later sees the other, because both were written
// before either was listed. So there is one record of a cluster at most, and only a record
// lets anything be sent.
//
//   - Where two pending claims see each other, one is refused and withdrawn, and the other
//     looks again: the rule is that of one process (decision 49). A name with a record comes
//     first, then one that spec.id names, then the first by name.
//   - A record is lost to nobody. It is dropped by the holder of its shard alone, when the
//     cluster has left git or the shard, or is another one by spec.id, and nothing is in
//     flight to it.
//   - Who takes a shard writes to the ConfigMap before it trusts what is there, so that
//     whatever a former holder still writes conflicts; and it withdraws what that one has
//     left pending. That is one write for a shard, and none for a cluster. The same holds
//     after a write that failed, which may still arrive.
//   - What is written or read in vain decides nothing: the cluster is sent nothing, and asks
//     again.
//
// A ConfigMap that is deleted by hand is forgotten: its clusters are recorded again when they
// are met next, and until then another name may come first.
package claims
