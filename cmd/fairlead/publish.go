// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/pull"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source"
)

// publishFlags say where to publish the manifests of pull clusters.
type publishFlags struct {
	to, prefix, auth string
}

func (f *publishFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.to, "publish", "", "where to publish manifests for pull clusters: a directory, with a subdirectory for each cluster, or a git repository (file://, https://, ssh:// or git@host:path), with a branch for each")
	flags.StringVar(&f.prefix, "publish-prefix", "fairlead/", "prefix of the branch names, before the cluster's name")
	flags.StringVar(&f.auth, "publish-auth", "", "directory of credentials for the repository of --publish, in the layout of --git-auth")
}

// open returns the constructor of members that publish for a pull cluster, nil
// without --publish.
func (f *publishFlags) open() (func(cluster string) member.Member, error) {
	if !isURL(f.to) {
		return f.directory()
	}
	auth, err := gitAuth("--publish-auth", f.auth)
	if err != nil {
		return nil, err
	}
	to, err := source.OpenBranches(f.to, auth)
	if err != nil {
		return nil, fmt.Errorf("--publish: %w", err)
	}

	to.Renew(func() (source.Auth, error) { return gitAuth("--publish-auth", f.auth) })
	branches := reconcile.Publish(to)
	return func(cluster string) member.Member { return pull.Branch(branches, f.prefix+cluster) }, nil
}

func (f *publishFlags) directory() (func(cluster string) member.Member, error) {
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

	return func(cluster string) member.Member { return pull.Directory(filepath.Join(f.to, cluster)) }, nil
}

// isURL reports whether an address is that of a repository, not a directory.
func isURL(address string) bool {
	return strings.Contains(address, "://") || strings.Contains(address, "@") && strings.Contains(address, ":")
}
