// SPDX-License-Identifier: Apache-2.0

// Command fairlead brings a fleet of Kubernetes clusters to what a git
// repository says, and shows what that is and will be.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
