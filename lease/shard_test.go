// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"strings"
	"testing"
)

func TestShardOf(t *testing.T) {
	for _, test := range []struct {
		cluster, override string
		shards, want      int
		err               string
	}{
		{"eu-1", "", 1, 0, ""},
		{"eu-1", "", 32, 19, ""}, // a8ddeaba6ab6b4b3, as sha256sum has it
		{"eu-1", "07", 32, 7, ""},
		{"eu-1", "31", 32, 31, ""},
		{"eu-1", "32", 32, 0, `"32" is not a shard: use a number from 0 to 31`},
		{"eu-1", "-1", 32, 0, "is not a shard"},
		{"eu-1", "0x1", 32, 0, "is not a shard"},
		{"eu-1", " 7", 32, 0, "is not a shard"},
		{"eu-1", "", 0, 0, "there must be at least one"},
	} {
		got, err := ShardOf(test.cluster, test.override, test.shards)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("ShardOf(%q, %q, %d): %v, not %q", test.cluster, test.override, test.shards, err, test.err)
			}
			continue
		}
		if err != nil || got != test.want {
			t.Errorf("ShardOf(%q, %q, %d) = %d, %v, not %d", test.cluster, test.override, test.shards, got, err, test.want)
		}
	}
}
