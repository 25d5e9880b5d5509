// SPDX-License-Identifier: Apache-2.0

// Package dispatchtest says what dispatch promises of a member, as tests that
// run on any API server:
//
//	dispatchtest.Run(t, func(t *testing.T) *rest.Config { return server.Config() })
//
// The embedded server and a real one pass the same suite; where they differ
// the embedded one is wrong. Fleet and Inventory are the simplest ones there
// are, for the tests of others too.
package dispatchtest
