// SPDX-License-Identifier: Apache-2.0

// Package hub runs the machine of package lease on the API server that has the
// Leases. Nothing uses it yet: the controller does not shard yet.
//
//	runner := hub.New(client.Leases("fairlead-system"), hub.Options{Config: …, Notify: …})
//	go runner.Run(ctx)
//	began := runner.Now()
//	… fetch and fold …
//	runner.Folded(began, history)
//
// What goes to a member goes through a [Transport] with the gate of the member's
// shard, and is part of a commit that [Runner.Permit] has let pass. Stop gives
// everything back; a Run whose context ends gives nothing back, as if the process had
// been killed.
package hub
