// SPDX-License-Identifier: Apache-2.0

// Package fakeforge has servers that speak the documented REST shapes of GitHub, GitLab
// and Gitea, as far as a comment on a pull request needs them: users, pull requests,
// branches, comments in pages, statuses and check runs. Limits and failures are put
// before a request with [Server.Fail].
//
//	server := fakeforge.GitHub("secret")
//	defer server.Close()
//	server.SetPull(7, fakeforge.Pull{Head: head, Base: base, Target: "main"})
package fakeforge
