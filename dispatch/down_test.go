// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/dispatchtest"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/testenv/kubetest"
)

// A real API server stops between two levels and comes back.
func TestRealServerDown(t *testing.T) {
	s := kubetest.Start(t, 1)[0]
	m, err := push.New(s.Config(), push.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.SetMember("eu-1", m)
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "red"))})
	if left := wait(t, d, 10*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}
	s.Stop(t)
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "blue"), configMap("b", "blue"))})
	left := wait(t, d, 500*time.Millisecond)
	if len(left) != 1 || !errors.Is(left[0].Err, member.Unreachable) || left[0].Waiting != 2 {
		t.Fatalf("left: %+v", left)
	}
	s.Restart(t)
	if left := wait(t, d, 20*time.Second); len(left) != 0 {
		t.Fatalf("left: %v", left[0].Err)
	}
	found, err := m.Get(context.Background(), refConfigMap("b"))
	if err != nil || found == nil {
		t.Errorf("found %v, %v", found, err)
	}
}
