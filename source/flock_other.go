// SPDX-License-Identifier: Apache-2.0

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// lockFile has no lock here that ends with its process: the file of a killed
// process has to be removed by hand.
func lockFile(file string) (unlock func(), err error) {
	for end := time.Now().Add(lockTime); ; time.Sleep(5 * time.Millisecond) {
		f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		switch {
		case err == nil:
			return func() { _ = os.Remove(file) }, f.Close()
		case !errors.Is(err, fs.ErrExist):
			return nil, err
		case time.Now().After(end):
			return nil, fmt.Errorf("%s exists: another process holds the lock; if none is running, remove the file", file)
		}
	}
}
