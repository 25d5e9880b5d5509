// SPDX-License-Identifier: Apache-2.0

// Command fairlead brings a fleet of Kubernetes clusters to what a git
// repository says, and shows what that is and will be.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// mayEndIn is how long a process that was told to end may take: longer than
// requests are waited for, and shorter than a kubelet waits.
var mayEndIn = 15 * time.Second

func main() { os.Exit(program(os.Args[1:])) }

// program runs until it is done or a signal ends it. A second signal ends what
// the first one did not.
func program(args []string) int {
	heedMemoryLimit(memlimit.FromCgroup)
	calm := make([]byte, slack)
	defer runtime.KeepAlive(calm)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() {
		stop()
		time.AfterFunc(mayEndIn, func() {
			fmt.Fprintf(os.Stderr, "told to end %s ago, and still busy: ending in the middle of it; nothing is lost, the next start goes on\n", mayEndIn)
			os.Exit(exitFailed)
		})
	})
	return run(ctx, args, os.Stdout, os.Stderr)
}
