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

// mayEndIn is how long the process may take to end after a signal: longer than
// requests are waited for, and shorter than a kubelet waits.
var mayEndIn = 15 * time.Second

func main() { os.Exit(program(os.Args[1:])) }

// program runs until it is done or a signal ends it. A second signal ends what
// the first one did not.
func program(args []string) int {
	stderr := ownStderr()
	heedMemoryLimit(memlimit.FromCgroup)
	held := make([]byte, ballast)
	defer runtime.KeepAlive(held)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() {
		stop()
		time.AfterFunc(mayEndIn, func() {
			fmt.Fprintf(stderr, "shutdown timed out after %s; state is saved, the next run resumes\n", mayEndIn)
			os.Exit(exitFailed)
		})
	})

	return run(ctx, args, os.Stdout, stderr)
}

// ownStderr returns the standard error, and leaves libraries another one that nobody
// reads: kustomize writes warnings there, without a file, and what it could not merge,
// which may be a value of a Secret (decision 48).
func ownStderr() *os.File {
	stderr := os.Stderr
	if nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0); err == nil {
		os.Stderr = nowhere
	}
	return stderr
}
