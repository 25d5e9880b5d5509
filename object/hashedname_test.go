// SPDX-License-Identifier: Apache-2.0

package object

import "testing"

func TestCutHash(t *testing.T) {
	for _, test := range []struct{ name, base, hash string }{
		{"settings-b4g2t5k9m6", "settings", "b4g2t5k9m6"},
		{"web-settings-245678dhkt", "web-settings", "245678dhkt"},
		{"settings", "settings", ""},
		{"settings-production", "settings-production", ""}, // letters that no hash has
		{"settings-b4g2t5k9m", "settings-b4g2t5k9m", ""},   // too short
		{"-b4g2t5k9m6", "-b4g2t5k9m6", ""},
	} {
		base, hash, ok := CutHash(test.name)
		if base != test.base || hash != test.hash || ok != (test.hash != "") {
			t.Errorf("%s: got %q, %q, %v", test.name, base, hash, ok)
		}
	}
}
