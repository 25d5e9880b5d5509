// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"net/http/httptest"
	"testing"

	"github.com/fairlead/fairlead/web"
)

// Only what a proxy has written counts: a viewer cannot name himself.
func TestViewer(t *testing.T) {
	proxies, err := web.ParseProxies([]string{"10.0.0.0/8", "192.0.2.1", "2001:db8::/32"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		from string
		via  []string
		want string
	}{
		{"203.0.113.9:4711", nil, "203.0.113.9"},
		{"203.0.113.9:4711", []string{"198.51.100.1"}, "203.0.113.9"},
		{"10.1.2.3:80", nil, "10.1.2.3"},
		{"10.1.2.3:80", []string{"198.51.100.1"}, "198.51.100.1"},
		{"[::ffff:10.1.2.3]:80", []string{"198.51.100.1"}, "198.51.100.1"},
		{"[2001:db8::1]:80", []string{"2001:db9::7"}, "2001:db9::7"},
		{"10.1.2.3:80", []string{"1.1.1.1, 198.51.100.1, 192.0.2.1"}, "198.51.100.1"},
		{"10.1.2.3:80", []string{"1.1.1.1", "198.51.100.1,10.4.4.4"}, "198.51.100.1"},
		{"10.1.2.3:80", []string{"1.1.1.1, nonsense, 10.4.4.4"}, "10.4.4.4"},
		{"10.1.2.3:80", []string{"10.9.9.9, 10.8.8.8"}, "10.9.9.9"},
		{"pipe", []string{"1.1.1.1"}, "pipe"},
	} {
		r := httptest.NewRequest("GET", "/events", nil)
		r.RemoteAddr = test.from
		for _, hop := range test.via {
			r.Header.Add("X-Forwarded-For", hop)
		}
		if got := proxies.Viewer(r); got != test.want {
			t.Errorf("from %s via %q: %s, want %s", test.from, test.via, got, test.want)
		}
	}

	for _, bad := range []string{"", "proxy", "10.0.0.0/64", "10.0.0"} {
		if _, err := web.ParseProxies([]string{bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
