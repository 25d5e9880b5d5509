// SPDX-License-Identifier: Apache-2.0

package fleet

import "testing"

func TestNearest(t *testing.T) {
	for _, test := range []struct {
		misspelt string
		names    []string
		want     string
	}{
		{"us1", []string{"eu-1", "us-1", "us-2"}, "us-1"},
		{"us-3", []string{"us-1", "us-2"}, "us-1"}, // equally near: the first
		{"prodution", []string{"production", "staging"}, "production"},
		{"mars", []string{"us-1", "us-2"}, ""},
		{"", []string{"a"}, "a"},
		{"x", nil, ""},
	} {
		if got := Nearest(test.misspelt, test.names); got != test.want {
			t.Errorf("%s: got %q, want %q", test.misspelt, got, test.want)
		}
	}
}
