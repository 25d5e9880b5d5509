// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/fairlead/fairlead/dispatch/embedded"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/testenv/kube"
)

// demoMember is a cluster of the demo.
type demoMember struct {
	config *push.Config
	stop   func()
}

// startMembers starts one API server for each name, all at once, or none.
func startMembers(kind string, names []string) (map[string]*demoMember, error) {
	start := startEmbedded
	switch kind {
	case "embedded":
	case "real":
		binaries, err := kube.Binaries()
		if err != nil {
			return nil, fmt.Errorf("--members real: %w", err)
		}
		start = func(string) (*demoMember, error) { return startReal(binaries) }
	default:
		return nil, usagef("--members %q must be embedded or real", kind)
	}

	members := make([]*demoMember, len(names))
	errs := make([]error, len(names))
	var starting sync.WaitGroup
	for i, name := range names {
		starting.Go(func() {
			var err error
			if members[i], err = start(name); err != nil {
				errs[i] = fmt.Errorf("member %s: %w", name, err)
			}
		})
	}

	starting.Wait()
	started := map[string]*demoMember{}
	for i, name := range names {
		if members[i] != nil {
			started[name] = members[i]
		}
	}

	if err := errors.Join(errs...); err != nil {
		stopMembers(started)
		return nil, err
	}

	return started, nil
}

func startEmbedded(name string) (*demoMember, error) {
	s, err := embedded.Start(embedded.Options{Name: name})
	if err != nil {
		return nil, err
	}
	return &demoMember{s.Config(), s.Close}, nil
}

func startReal(binaries string) (*demoMember, error) {
	s, err := kube.Start(binaries)
	if err != nil {
		return nil, err
	}
	// The demo is over, so an error of the shutdown does not matter.
	return &demoMember{s.Config(), func() { _ = s.Stop() }}, nil
}

// stopMembers stops all at once: a real one takes a moment.
func stopMembers(members map[string]*demoMember) {
	var stopping sync.WaitGroup
	for _, m := range members {
		stopping.Go(m.stop)
	}
	stopping.Wait()
}

// writeKubeconfig makes a file with a context for each member.
func writeKubeconfig(file string, members map[string]*demoMember) error {
	configs := map[string]*push.Config{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		configs[name] = members[name].config
	}
	return push.WriteContexts(file, configs)
}
