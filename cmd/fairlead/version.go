// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/render"
	"github.com/fairlead/fairlead/source"
)

// version is set by the release build.
var version = "dev"

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of fairlead and of its rules",
		Args:  mustNotHaveArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine())
			return err
		},
	}
}

func versionLine() string {
	return fmt.Sprintf("fairlead %s (rules %d, rendering %d, %s, %s/%s)", build(), propagate.Version, render.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// build is the version, or the commit it was built from.
func build() string {
	if info, ok := debug.ReadBuildInfo(); ok && version == "dev" {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return version + "-" + source.Short(s.Value)
			}
		}
	}
	return version
}
