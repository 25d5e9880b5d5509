// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch/dispatchtest"
	"github.com/fairlead/fairlead/dispatch/embedded"
	"github.com/fairlead/fairlead/testenv/kubetest"
)

func TestContractEmbedded(t *testing.T) {
	dispatchtest.Run(t, func(t *testing.T) *rest.Config { return start(t, "eu-1").Config() })
}

func TestContractReal(t *testing.T) {
	dispatchtest.Run(t, func(t *testing.T) *rest.Config { return kubetest.Start(t, 1)[0].Config() })
}

func start(t testing.TB, name string) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(embedded.Options{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}
