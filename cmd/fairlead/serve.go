// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/web"
)

type serveFlags struct {
	lookFlags
	members  memberFlags
	addr     string
	auth     string
	proxies  []string
	name     string
	forge    string
	interval time.Duration
}

func newServe() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the fleet as a page that follows the branch",
		Long: `Serves a page: every template on every cluster, what is held and for how long, why,
the history of each, and the fleet as of any commit of the branch. It only reads, and
follows the branch: commits of a local repository at once, a remote one every
--interval.

It reads git alone, and shows what the fold decided. With --kubeconfig it also asks the
clusters what they have.

The page has no users: whoever reaches the address sees everything but the values of
Secrets. An address that is not of this machine needs --page-auth none, which says that
something in front of it decides who may.`,
		Example: `  fairlead serve
  fairlead serve -C https://github.com/acme/fleet --interval 1m
  fairlead serve --kubeconfig members.yaml --addr 0.0.0.0:8088 --page-auth none`,
		Args: mustNotHaveArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.serve(cmd) },
	}
	f.bind(cmd.Flags())
	f.members.bind(cmd.Flags())
	flags := cmd.Flags()
	flags.Lookup("kubeconfig").Usage = "kubeconfig with a context named after each cluster, to ask the clusters what they have (default: they are not asked)"
	flags.StringVar(&f.addr, "addr", "127.0.0.1:8088", "address to serve at")
	flags.StringVar(&f.auth, "page-auth", "", "who may see the page at an address that is not of this machine: none (whoever reaches it; something in front decides)")
	flags.StringSliceVar(&f.proxies, "page-proxies", nil, "addresses and networks of the proxies in front of the page, whose X-Forwarded-For says who a request is from")
	flags.StringVar(&f.name, "name", "", "what the page calls the fleet (default: its own name)")
	flags.StringVar(&f.forge, "forge", "", "forge of the repository, for links: github, gitlab, gitea (default: what the host is called)")
	flags.DurationVar(&f.interval, "interval", 30*time.Second, "how often a remote repository is fetched, and the clusters are asked")
	return cmd
}

func (f *serveFlags) check() error {
	switch {
	case f.interval <= 0:
		return usagef("--interval must be greater than 0")
	case f.auth != "" && f.auth != "none":
		return usagef("--page-auth %q must be none: only the controller knows users", f.auth)
	}
	if f.forge != "" {
		if err := checkOneOf("--forge", f.forge, "github", "gitlab", "gitea"); err != nil {
			return err
		}
	}
	elsewhere, err := reachable(f.addr)
	if err != nil {
		return usagef("--addr: %w", err)
	}
	if elsewhere && f.auth == "" {
		return usagef("--addr %s can be reached from elsewhere, and the page has no users: put something in front that decides who may see it, and say --page-auth none", f.addr)
	}
	return nil
}

// reachable reports whether other machines reach an address to listen on.
func reachable(addr string) (bool, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false, err
	}
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback()), nil
}

func (f *serveFlags) serve(cmd *cobra.Command) error {
	if err := errors.Join(f.check(), f.checkGates()); err != nil {
		return err
	}
	proxies, err := web.ParseProxies(f.proxies)
	if err != nil {
		return usagef("--page-proxies: %w", err)
	}
	ctx, stderr := cmd.Context(), cmd.ErrOrStderr()
	repo, err := f.fleetFlags.open(ctx)
	if err != nil {
		return err
	}
	fleet, err := f.fleet(repo)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", f.addr)
	if err != nil {
		return err
	}

	page := web.New(web.Options{Fleet: fleet, Address: proxies.Viewer, Log: func(text string) { printable.Fprintf(stderr, "fairlead: %s\n", text) }})
	fmt.Fprintf(cmd.OutOrStdout(), "http://%s\n", listener.Addr())
	followed := make(chan error, 1)
	go func() { followed <- page.Run(ctx) }()
	var handler http.Handler = page
	if f.auth == "" {
		handler = web.LocalOnly(page)
	}
	if err := web.Serve(ctx, listener, handler); err != nil {
		return err
	}
	return <-followed
}

// fleet is the fleet of the flags, as the page has it.
func (f *serveFlags) fleet(repo *source.Repo) (fleet web.Fleet, err error) {
	fleet = web.Fleet{Name: f.name, Ref: f.ref, Forge: web.NewForge(repo.Origin(), f.forge, f.path), FetchEvery: f.interval,
		Open: func(context.Context) (*history.States, error) { return f.states(repo) }}
	if _, err := os.Stat(f.repo); err != nil {
		fleet.Fetch = repo.Fetch
	}
	if f.flags.Changed("kubeconfig") {
		fleet.Ask, err = f.members.open()
	}
	return fleet, err
}
