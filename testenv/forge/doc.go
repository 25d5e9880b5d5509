// SPDX-License-Identifier: Apache-2.0

// Package forge runs a real Gitea on this machine, for the tests. `make forge` builds it.
//
//	server := forge.Start(t)
//	ann, err := server.User("ann")
//	err = server.Repo(ann, "fleet")
//	… git push to server.CloneURL(ann, "ann/fleet") …
//	number, err := server.OpenPull(ann, "ann/fleet", "change", "main")
//
// Without FAIRLEAD_REAL=1 a test is skipped and says so. With it, a Gitea that is not
// built fails the test.
package forge
