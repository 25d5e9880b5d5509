// SPDX-License-Identifier: Apache-2.0

// Package hub runs the machine of package lease on the API server that has the
// Leases, and makes the members that a replica writes to.
//
//	runner := hub.New(client.Leases("fairlead-system"), hub.Options{Config: …, Notify: …})
//	go runner.Run(ctx)
//	began := runner.Now()
//	… fetch and fold …
//	runner.Folded(began, history)
//
// What [Runner.Push] and [Runner.Pull] make is a member behind the gate of its shard: what
// it writes is part of a commit that [Runner.Permit] has let pass. Stop gives
// everything back; a Run whose context ends gives nothing back, as if the process had
// been killed.
package hub
