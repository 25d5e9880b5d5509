// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A thousand clusters that are met at once cost two writes for each of their shards and one
// list; those of a shard that is taken over one write and one list for all shards.
func TestClaimsAreBatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		w := newWorld(t, fake)
		all := docs{}
		for i := range 1000 {
			all[fmt.Sprintf("eu-%d", i)] = doc{shard: i % 4}
		}
		meet := func(h *holder) map[string]int {
			time.Sleep(time.Second)
			fake.taken()
			var asked sync.WaitGroup
			for name := range all {
				asked.Go(func() { h.granted(name, types.UID("u-"+name)) })
			}
			asked.Wait()
			return fake.taken()
		}

		a := w.start("a", 4, 0, 1, 2, 3)
		w.keep(all)
		if got, want := meet(a), map[string]int{"update": 8, "list": 1}; !maps.Equal(got, want) {
			t.Errorf("%v, not %v", got, want)
		}
		a.stop()
		time.Sleep(time.Second)
		fake.taken()

		b := w.start("b", 4, 0, 1, 2, 3)
		w.keep(all)
		time.Sleep(time.Second)
		if got, want := fake.taken(), map[string]int{"update": 4, "list": 1}; !maps.Equal(got, want) {
			t.Errorf("taken over: %v, not %v", got, want)
		}
		if got := meet(b); len(got) > 0 {
			t.Errorf("met again: %v, not nothing", got)
		}
		b.stop()
	})
}

// What cannot be read or written decides nothing, and says what is wrong.
func TestClaimsAreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		w := newWorld(t, fake)
		a := w.start("a", 4, 1)
		defer a.stop()
		fails := func(cluster, want string) {
			t.Helper()
			if _, _, err := a.Claim(t.Context(), cluster, "u1"); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, not %s", cluster, err, want)
			}
		}
		fails("eu-1", "it is not known yet which clusters there are")
		w.keep(docs{"eu-1": {shard: 1}, "eu-2": {shard: 2}})
		fails("eu-2", "no claim of shard 02 can be written: it is not held here")
		fails("eu-3", "it has left the fleet")

		time.Sleep(time.Second)
		fake.away = "update"
		fails("eu-1", "the claims of shard 01 could not be written: away")
		fake.away = "list"
		fails("eu-1", "the claims of the shards could not be read: away")
		fake.away = ""
		a.granted("eu-1", "u1")
		fake.stored["fairlead-acme-members-01-of-4"].Data["eu-9"] = "what is this"
		fake.stored["fairlead-acme-members-01-of-4"].ResourceVersion = "900"
		w.keep(docs{"eu-1": {shard: 1}, "eu-2": {shard: 1}})
		fails("eu-2", "the object has been modified")
		fails("eu-2", `ConfigMap /fairlead-acme-members-01-of-4: eu-9: "what is this" is not a UID`)
	})
}
