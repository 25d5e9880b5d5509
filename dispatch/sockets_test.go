// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/dispatchtest"
	"github.com/fairlead/fairlead/dispatch/push"
)

// F15: there are file descriptors for fewer connections than there are members to
// watch. All of them get what they should, again and again, and it is told once.
func TestFewSockets(t *testing.T) {
	const members, most = 24, 6
	all := push.NewConnLimit(most)
	var told atomic.Int64
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick, Watch: true, Log: func(e dispatch.Event) {
		if e.Op == "warn" {
			told.Add(1)
		}
	}})
	defer d.Close(context.Background())
	works := func(colour string) dispatchtest.Works {
		out := dispatchtest.Works{}
		for i := range members {
			out[fmt.Sprint("m", i)] = apply(configMap("a", colour))
		}
		return out
	}
	for i := range members {
		m, err := push.New(start(t, fmt.Sprint("m", i)).Config(), push.Options{Limit: all})
		if err != nil {
			t.Fatal(err)
		}
		d.SetMember(fmt.Sprint("m", i), m)
	}
	for _, colour := range []string{"red", "blue", "green"} {
		sync1(t, d, works(colour))
		if left := wait(t, d, 30*time.Second); len(left) != 0 {
			t.Fatalf("left: %v", left[0].Err)
		}
		if n := all.Open(); n > most {
			t.Errorf("%d connections are open, want no more than %d", n, most)
		}
	}
	until(t, func() bool { return told.Load() == 1 })
}

// Where nothing can be closed it is said what is missing.
func TestNoSocketLeft(t *testing.T) {
	s := start(t, "eu-1")
	all := push.NewConnLimit(1)
	m, err := push.New(s.Config(), push.Options{Limit: all})
	if err != nil {
		t.Fatal(err)
	}
	s.SetLatency(time.Second)
	ended := make(chan error)
	go func() {
		_, err := m.Get(context.Background(), refConfigMap("a"))
		ended <- err
	}()
	until(t, func() bool { return all.Open() == 1 })
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := m.Get(ctx, refConfigMap("b")); err == nil {
		t.Error("there was another connection")
	}
	// The one that waits takes the place of the one that ends.
	if _, err := m.Get(context.Background(), refConfigMap("b")); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := all.Open(); n > 1 {
		t.Errorf("%d connections are open, and there may be one", n)
	}
}
