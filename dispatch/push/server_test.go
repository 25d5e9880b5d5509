// SPDX-License-Identifier: Apache-2.0

package push_test

import (
	"testing"

	"github.com/fairlead/fairlead/dispatch/embedded"
)

func start(t testing.TB, name string) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(embedded.Options{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}
