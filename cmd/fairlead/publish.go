// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source"
)

// publishFlags say where pull clusters find what they should run.
type publishFlags struct {
	to, prefix, auth string
}

func (f *publishFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.to, "publish", "", "where pull clusters find what to run: a directory that gets one for each, or a git repository (file://, https://, ssh:// or git@host:path) that gets a branch for each")
	flags.StringVar(&f.prefix, "publish-prefix", "fairlead/", "what the name of a cluster's branch begins with, before the cluster's name")
	flags.StringVar(&f.auth, "publish-auth", "", "directory of credentials for the repository of --publish, laid out as that of --git-auth")
}

// open finds the way to write for a pull cluster, nil when there is none.
func (f *publishFlags) open() (func(cluster string) dispatch.Member, error) {
	if !isURL(f.to) {
		return f.directory()
	}
	auth, err := credentials("--publish-auth", f.auth)
	if err != nil {
		return nil, err
	}
	to, err := source.OpenBranches(f.to, auth)
	if err != nil {
		return nil, fmt.Errorf("--publish: %w", err)
	}
	to.Renew(func() (source.Auth, error) { return credentials("--publish-auth", f.auth) })
	branches := reconcile.Publish(to)
	return func(cluster string) dispatch.Member { return dispatch.Branch(branches, f.prefix+cluster) }, nil
}

func (f *publishFlags) directory() (func(cluster string) dispatch.Member, error) {
	if f.auth != "" {
		return nil, usagef("--publish-auth is for a git repository; --publish names none")
	}
	if f.to == "" {
		return nil, nil
	}
	if r, err := source.Open(f.to); err == nil && r.WorkTree() == nil {
		path, _ := filepath.Abs(f.to)
		return nil, usagef("--publish %s is a git repository: write file://%s to publish to its branches", f.to, filepath.ToSlash(path))
	}
	return func(cluster string) dispatch.Member { return dispatch.Directory(filepath.Join(f.to, cluster)) }, nil
}

// isURL tells the address of a repository from a directory.
func isURL(address string) bool {
	return strings.Contains(address, "://") || strings.Contains(address, "@") && strings.Contains(address, ":")
}
