// SPDX-License-Identifier: Apache-2.0

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package push

// mostFiles is how many files and connections the process may have open; 0 when
// that is not known.
func mostFiles() int { return 0 }
