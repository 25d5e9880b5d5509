// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"strings"
)

// firstFleet writes the commands that README.md gives under "Your first fleet" to a
// file, without those that make the demo and the path.
func firstFleet(file string) error {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		return err
	}
	_, section, _ := strings.Cut(string(readme), "## Your first fleet")
	section, _, found := strings.Cut(section, "\n## ")
	if !found {
		return errors.New("README.md has no section \"Your first fleet\"")
	}

	script := "set -e\n"
	for i, block := range strings.Split(section, "```sh\n")[1:] {
		if commands, _, _ := strings.Cut(block, "```"); i > 0 { // the first starts the members
			script += commands
		}
	}
	return os.WriteFile(file, []byte(strings.Replace(script, "export PATH=$PWD/bin:$PATH\n", "", 1)), 0o644)
}
