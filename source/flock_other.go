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

// onlyOne knows no lock here that ends with its process: the file of one that
// was killed is to be removed by hand.
func onlyOne(file string) (unlock func(), err error) {
	for end := time.Now().Add(lockTime); ; time.Sleep(5 * time.Millisecond) {
		f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		switch {
		case err == nil:
			return func() { _ = os.Remove(file) }, f.Close()
		case !errors.Is(err, fs.ErrExist):
			return nil, err
		case time.Now().After(end):
			return nil, fmt.Errorf("%s is there: another process holds it, or was killed and the file is to be removed", file)
		}
	}
}
