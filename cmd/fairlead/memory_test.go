// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// F14: what the collector may use follows the limit of the cgroup, unless
// GOMEMLIMIT says otherwise.
func TestMemoryLimitOfTheCgroup(t *testing.T) {
	if os.Getenv("FAIRLEAD_TEST_LIMIT") != "" {
		heedMemoryLimit()
		fmt.Println("limit", debug.SetMemoryLimit(-1))
		return
	}
	procs := limited(t, 200<<20)
	for _, test := range []struct {
		set  string
		want int64
	}{
		{"", (200 << 20) / 10 * 9},
		{"150MiB", 150 << 20},
		{"off", math.MaxInt64},
	} {
		said, err := exec.Command("sh", "-c", `echo $$ > "$0" && FAIRLEAD_TEST_LIMIT=1 GOMEMLIMIT="$1" exec "$2" -test.run '^TestMemoryLimitOfTheCgroup$'`,
			procs, test.set, os.Args[0]).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		if want := fmt.Sprintf("limit %d\n", test.want); !strings.Contains(string(said), want) {
			t.Errorf("GOMEMLIMIT=%q: got %s, want %s", test.set, said, want)
		}
	}
}

// limited makes a cgroup with a limit, and returns the file that takes members.
func limited(t *testing.T, limit int) (procs string) {
	t.Helper()
	for parent, file := range map[string]string{
		"/sys/fs/cgroup/memory": "memory.limit_in_bytes",
		"/sys/fs/cgroup":        "memory.max",
	} {
		dir := filepath.Join(parent, fmt.Sprintf("fairlead-test-%d", os.Getpid()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
		if os.WriteFile(filepath.Join(dir, file), fmt.Append(nil, limit), 0o600) == nil {
			return filepath.Join(dir, "cgroup.procs")
		}
	}
	t.Skip("no cgroup can be made here")
	return ""
}
