// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package source

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockFile waits until no other process holds the lock of a file. The lock ends
// with the process, however that ends.
func lockFile(file string) (unlock func(), err error) {
	for end := time.Now().Add(lockTime); ; {
		f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			return nil, err
		}

		switch err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil && isAt(f, file):
			return func() {
				_ = os.Remove(file)
				_ = f.Close()
			}, nil
		case err == nil: // the previous holder has removed it
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return nil, errors.Join(fmt.Errorf("lock %s: %w", file, err), f.Close())
		case time.Now().After(end):
			return nil, errors.Join(fmt.Errorf("another process holds %s", file), f.Close())
		default:
			time.Sleep(5 * time.Millisecond)
		}

		_ = f.Close()
	}
}

func isAt(f *os.File, file string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	its, err := os.Stat(file)
	return err == nil && os.SameFile(mine, its)
}
