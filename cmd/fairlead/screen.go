// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/printable"
)

// terminalOf returns the terminal that a writer writes to; nil if it is none.
func terminalOf(w io.Writer) *os.File {
	if f, ok := printable.Raw(w).(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// screenOf returns what a command prints on. Only a terminal has a width, which COLUMNS
// overrides, and colours, unless --color or NO_COLOR say otherwise.
func screenOf(cmd *cobra.Command) (s output.Screen) {
	terminal := terminalOf(cmd.OutOrStdout())
	if terminal != nil {
		if width, _, err := term.GetSize(int(terminal.Fd())); err == nil {
			s.Width = width
		}
		if width, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && width > 0 {
			s.Width = width
		}
	}

	switch cmd.Flags().Lookup("color").Value.String() {
	case colorAlways:
		s.Color = true
	case colorAuto:
		s.Color = terminal != nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	return s
}

// The values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

type progressKey struct{}

// withProgress has long folds show how far they are, if stderr is a terminal.
func withProgress(ctx context.Context, stderr io.Writer) context.Context {
	terminal := terminalOf(stderr)
	if terminal == nil {
		return ctx
	}
	return context.WithValue(ctx, progressKey{}, history.NewProgress(terminal, time.Now))
}

func progressOf(ctx context.Context) *history.Progress {
	p, _ := ctx.Value(progressKey{}).(*history.Progress)
	return p
}
