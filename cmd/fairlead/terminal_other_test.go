// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import "github.com/rogpeppe/go-internal/testscript"

// onTerminal needs Linux: each system opens a terminal in its own way.
func onTerminal(ts *testscript.TestScript, _ bool, _ []string) { ts.Fatalf("terminal: only on Linux") }
