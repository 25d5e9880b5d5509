// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fairlead/fairlead/look/plan"
	"github.com/fairlead/fairlead/printable"
)

// outFile is a value of --out.
type outFile struct {
	form plan.Form
	name string
}

func (o outFile) isStdout() bool { return o.name == "-" }

// outFiles reads the values of --out. Each file is written once, and so is the standard
// output, which -o may want.
func outFiles(values []string, wanted bool) (files []outFile, err error) {
	named := map[string]bool{"-": wanted}
	for _, value := range values {
		name, file, _ := strings.Cut(value, "=")
		form, known := plan.FormOf(name)
		switch {
		case !known:
			return nil, usagef("--out %q must be FORM=FILE, with one of %s", value, strings.Join(plan.FormNames(), ", "))
		case file == "":
			return nil, usagef("--out %q names no file, as in --out %s=FILE", value, name)
		case file == "-" && named[file]:
			return nil, usagef("--out %s: the standard output can have one form only", value)
		case named[filepath.Clean(file)]:
			return nil, usagef("--out %s: another --out names the same file", value)
		}
		named[filepath.Clean(file)] = true
		files = append(files, outFile{form, file})
	}
	return files, nil
}

// writeAll writes a plan into every file, as a pipe would get it. Nothing is written
// before all of it is there.
func writeAll(files []outFile, r *plan.Plan, stdout io.Writer, view plan.View) error {
	texts := make([]bytes.Buffer, len(files))
	for i, f := range files {
		if err := f.form.Write(r, printable.NewWriter(&texts[i]), view); err != nil {
			return err
		}
	}

	for i, f := range files {
		if f.isStdout() {
			if _, err := stdout.Write(texts[i].Bytes()); err != nil {
				return err
			}
			continue
		}
		if err := writeFile(f.name, texts[i].Bytes()); err != nil {
			return fmt.Errorf("--out %s: %w", f.name, err)
		}
	}
	return nil
}

// writeFile replaces a file at once; a pipe or a device is written to.
func writeFile(name string, content []byte) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(name, content, 0o666)
	}
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}

	tmp := filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s.%d", filepath.Base(name), os.Getpid()))
	err := os.WriteFile(tmp, content, 0o666)
	if err == nil {
		err = os.Rename(tmp, name)
	}
	if err != nil {
		_ = os.Remove(tmp) // it may not be there
	}
	// The name of the temporary file tells nobody anything.
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
