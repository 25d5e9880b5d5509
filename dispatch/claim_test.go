// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/dispatchtest"
	"github.com/fairlead/fairlead/dispatch/member"
)

// T47: what another process has recorded decides before anything is sent: another name, another
// cluster under this name, or nothing as long as it cannot be asked.
func TestClaimIsAskedFirst(t *testing.T) {
	for _, test := range []struct {
		recorded types.UID
		other    string
		err      error
		reason   member.Reason
		text     string
	}{
		{other: "aa-1", reason: member.Replaced, text: "it is the same cluster as aa-1"},
		{recorded: "u0", reason: member.Replaced, text: "it is another cluster than before"},
		{err: errors.New("away"), reason: member.Withheld, text: "nothing is sent to it: away"},
	} {
		s := start(t, "one")
		var asked atomic.Int64
		open := make(chan struct{})
		d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick, Claim: func(_ context.Context, _ string, uid types.UID) (types.UID, string, error) {
			asked.Add(1)
			select {
			case <-open:
				return uid, "", nil
			default:
				return test.recorded, test.other, test.err
			}
		}})
		d.SetMember("eu-1", pushTo(t, s))
		works := dispatchtest.Works{"eu-1": apply(configMap("a", "red"))}
		sync1(t, d, works)
		left := wait(t, d, 500*time.Millisecond)
		if len(left) != 1 || !errors.Is(left[0].Err, test.reason) || !strings.Contains(left[0].Err.Error(), test.text) || asked.Load() == 0 {
			t.Errorf("%s: left %v", test.text, left)
		}
		if n := writes(s); n > 0 {
			t.Errorf("%s: %d writes", test.text, n)
		}

		close(open)
		if err := d.Sync(dispatchtest.Fleet(works), nil, dispatch.SyncOptions{All: true}); err != nil {
			t.Fatal(err)
		}
		if left := wait(t, d, 10*time.Second); len(left) > 0 || !holds(t, s, "a") {
			t.Errorf("%s: afterwards left %v", test.text, left)
		}
		d.Close(context.Background())
	}
}
