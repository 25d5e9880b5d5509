// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// F14: what the collector may use follows what the process is granted, unless
// GOMEMLIMIT says otherwise.
func TestMemoryLimitIsHeeded(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	for _, test := range []struct {
		name    string
		set     string
		granted uint64
		err     error
		want    int64 // math.MaxInt64: it is left as it was
	}{
		{"a limit", "", 200 << 20, nil, (200 << 20) / 10 * 9},
		{"GOMEMLIMIT", "150MiB", 200 << 20, nil, math.MaxInt64},
		{"no cgroup", "", 0, errors.New("none"), math.MaxInt64},
		{"no limit, as the first version of cgroups says it", "", math.MaxInt64 &^ 4095, nil, math.MaxInt64},
		{"no limit", "", math.MaxUint64, nil, math.MaxInt64},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", test.set)
			debug.SetMemoryLimit(math.MaxInt64)
			heedMemoryLimit(func() (uint64, error) { return test.granted, test.err })
			if got := debug.SetMemoryLimit(-1); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

// F14: the cgroup is that of the process. It is left out where none can be made;
// what is done with its limit is shown without one.
func TestMemoryLimitOfTheCgroup(t *testing.T) {
	if os.Getenv("FAIRLEAD_TEST_LIMIT") != "" {
		heedMemoryLimit(memlimit.FromCgroup)
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
// The kernel makes the files of a cgroup; where it made none the directory is
// ordinary (the root of the first version is a tmpfs) and limits nothing.
func limited(t *testing.T, limit int) (procs string) {
	t.Helper()
	for _, hierarchy := range []struct{ parent, limit string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
		{"/sys/fs/cgroup", "memory.max"},
	} {
		dir := filepath.Join(hierarchy.parent, fmt.Sprintf("fairlead-test-%d", os.Getpid()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(dir) })

		file, err := os.OpenFile(filepath.Join(dir, hierarchy.limit), os.O_WRONLY, 0)
		if err != nil {
			continue
		}
		_, err = fmt.Fprint(file, limit)
		if err := errors.Join(err, file.Close()); err != nil {
			continue
		}
		return filepath.Join(dir, "cgroup.procs")
	}
	t.Skip("no cgroup can be made here")
	return ""
}
