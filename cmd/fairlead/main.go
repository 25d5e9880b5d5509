// SPDX-License-Identifier: Apache-2.0

// Command fairlead brings a fleet of Kubernetes clusters to what a git
// repository says, and shows what that is and will be.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// slack is memory that is asked for and never touched, so that it costs none.
// The collector runs when the heap has doubled; without it the few MiB of a
// small fleet would double, and be collected, ten times in one commit.
const slack = 32 << 20

func main() {
	calm := make([]byte, slack)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	runtime.KeepAlive(calm)
	os.Exit(code)
}
