// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package source

import "syscall"

// largeTable is from how many bytes on a table is not in the heap.
const largeTable = 1 << 20

// allocate makes a table; free, which is nil for a small one, gives it back.
func allocate(n int) (b []byte, free func()) {
	if n < largeTable {
		return make([]byte, n), nil
	}
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return make([]byte, n), nil
	}
	return b, func() { _ = syscall.Munmap(b) } // it fails for what was not mapped
}
