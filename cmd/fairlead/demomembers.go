// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/embedded"
)

// demoMember is a cluster of the demo.
type demoMember struct {
	config *dispatch.Config
	stop   func()
}

// startMembers starts one API server for each name.
func startMembers(kind, dir string, names []string) (map[string]*demoMember, error) {
	if kind != "embedded" {
		return nil, usagef("--members %q is none of embedded, real", kind)
	}
	started := map[string]*demoMember{}
	for _, name := range names {
		s, err := embedded.Start(embedded.Options{Name: name})
		if err != nil {
			return nil, fmt.Errorf("member %s: %w", name, err)
		}
		started[name] = &demoMember{s.Config(), s.Close}
	}
	return started, nil
}

// writeKubeconfig makes a file with a context for each member.
func writeKubeconfig(file string, members map[string]*demoMember) error {
	configs := map[string]*dispatch.Config{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		configs[name] = members[name].config
	}
	return dispatch.WriteContexts(file, configs)
}
