// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// maxFile limits a file of a directory; the API server has the same limit for a Secret.
const maxFile = 1 << 20

// ReadDir reads a directory with a file for each key, such as a Secret that is mounted.
// What is no file, and names that begin with a dot, are left out.
func ReadDir(dir fs.FS) (map[string][]byte, error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, cause(err)
	}

	values := map[string][]byte{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		info, err := fs.Stat(dir, e.Name()) // follows the links of a mounted Secret
		if err == nil && !info.Mode().IsRegular() {
			continue
		}
		if err == nil {
			values[e.Name()], err = readFile(dir, e.Name())
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), cause(err))
		}
	}

	return values, nil
}

func readFile(dir fs.FS, name string) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	return b, err
}

// cause is an error without the path that the caller names.
func cause(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// data is a Secret while it is read.
type data struct {
	name   string
	values map[string][]byte
}

// text is a value without the line break that editors and echo add; "" without the key.
func (d data) text(key string) string { return strings.TrimRight(string(d.values[key]), "\r\n") }

// first is the value of the first key that has one.
func (d data) first(keys ...string) []byte {
	for _, key := range keys {
		if b := d.values[key]; len(bytes.TrimSpace(b)) > 0 {
			return b
		}
	}
	return nil
}

// hasAny reports whether one of the keys is there, even with an empty value.
func (d data) hasAny(keys ...string) bool {
	for _, key := range keys {
		if _, ok := d.values[key]; ok {
			return true
		}
	}
	return false
}

func (d data) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", d.name, fmt.Errorf(format, args...))
}

// checkCA refuses what cannot be trusted because there is no certificate in it.
func (d data) checkCA(key string, ca []byte) error {
	if len(ca) > 0 && !x509.NewCertPool().AppendCertsFromPEM(ca) {
		return d.errorf("%s has no PEM certificate", key)
	}
	return nil
}
