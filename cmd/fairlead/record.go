// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/fairlead/fairlead/eventlog"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/reconcile/checkpoint"
	"github.com/fairlead/fairlead/source"
)

// recordFlags say where a run keeps its record.
type recordFlags struct{ state string }

func (r *recordFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&r.state, "state", "", "state directory of the run whose record to show (default: that of a run on this machine, if there is one)")
}

// dir is where a run keeps its record, "" when there is none to show. later says that
// one may still begin.
func (r *recordFlags) dir(f *fleetFlags, later bool) (string, error) {
	if r.state != "" {
		if _, err := os.Stat(r.state); err != nil {
			return "", fmt.Errorf("--state: %w", err)
		}
		return r.state, nil
	}
	repo, err := absolute(f.repo)
	if err != nil {
		return "", err
	}
	dir, err := checkpoint.DefaultDir(checkpoint.Origin{Repo: source.Redact(repo), Ref: f.ref, Path: f.path})
	if err != nil {
		return "", nil //nolint:nilerr // no home, so no run can have kept anything there
	}
	if _, err := os.Stat(filepath.Join(dir, "checkpoint.db")); errors.Is(err, fs.ErrNotExist) && !later {
		return "", nil
	}

	return dir, nil
}

// open opens the record of a run; it is nil when there is none.
func (r *recordFlags) open(f *fleetFlags) (*eventlog.Reader, error) {
	dir, err := r.dir(f, false)
	if dir == "" {
		return nil, err
	}
	return eventlog.NewReader(dir), err
}

// explain tells of a fleet what the record of a run has of it. The record is only read if
// there is something to explain.
func explain(seen *status.Fleet, record *eventlog.Reader) (told []string) {
	if !seen.Unexplained() {
		return nil
	}
	told = readFailures(seen.Failures, record)
	seen.Explain()
	return told
}

// readFailures goes on with the failures in a record. One that cannot be read is told: it
// explains what is seen, and is not what is asked for.
func readFailures(known status.Failures, record *eventlog.Reader) (told []string) {
	events, err := record.Next()
	if err != nil {
		told = append(told, fmt.Sprintf("the record of the run is not shown: %v", err))
	}
	known.Read(events)
	return told
}
