// SPDX-License-Identifier: Apache-2.0

package render

import (
	"io"
	"log"
	"runtime"
	"strings"
)

// withoutExit keeps kustomize from ending the process while it builds: where it gives
// up it calls log.Fatal, which writes a line and exits. The line becomes a panic, which
// ends the build. The returned function restores the logger.
//
// What kustomize only logs is dropped, as it may quote a value. Lines of others pass.
func withoutExit() func() {
	before := log.Writer()
	log.SetOutput(buildLog{before})
	return func() { log.SetOutput(before) }
}

type buildLog struct{ others io.Writer }

// Write implements io.Writer.
func (w buildLog) Write(line []byte) (int, error) {
	var callers [32]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	fatal := false
	for {
		frame, more := frames.Next()
		fatal = fatal || strings.HasPrefix(frame.Function, "log.Fatal")
		if strings.HasPrefix(frame.Function, "sigs.k8s.io/kustomize/") {
			if fatal {
				panic("kustomize gave up")
			}
			return len(line), nil
		}
		if !more {
			return w.others.Write(line)
		}
	}
}
