// SPDX-License-Identifier: Apache-2.0

package push

import (
	"fmt"
	"maps"
	"os"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/fairlead/fairlead/dispatch/member"
)

// Contexts are the contexts of a kubeconfig: one per cluster, named like it. Of
// LoadContexts it is the operator's own, and trusted as kubectl would (fold rule 26); of
// ParseContexts somebody else's.
type Contexts struct {
	file    string
	missing bool // there is no such file
	raw     api.Config
	allow   *Allow // nil: everything
}

// LoadContexts reads a kubeconfig file; an empty name is where kubectl looks.
func LoadContexts(file string) (*Contexts, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	raw, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", file, err)
	}
	if file == "" {
		file = rules.GetDefaultFilename()
	}

	missing := !slices.ContainsFunc(rules.GetLoadingPrecedence(), func(file string) bool {
		_, err := os.Stat(file)
		return err == nil
	})
	return &Contexts{file: file, missing: missing, raw: *raw}, nil
}

// Names of the contexts, sorted.
func (c *Contexts) Names() []string {
	return slices.Sorted(maps.Keys(c.raw.Contexts))
}

// For returns how to reach a cluster.
func (c *Contexts) For(cluster string) (*rest.Config, error) {
	if c.raw.Contexts[cluster] == nil {
		return nil, &member.NoContextError{File: c.file, Missing: c.missing, Cluster: cluster}
	}
	if c.allow != nil {
		cfg, err := c.allow.config(&c.raw, c.raw.Contexts[cluster])
		if err != nil {
			return nil, fmt.Errorf("%s, context %q: %w", c.file, cluster, err)
		}
		return cfg, nil
	}

	cfg, err := clientcmd.NewNonInteractiveClientConfig(c.raw, cluster, nil, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s, context %q: %w", c.file, cluster, err)
	}
	// The worker of each member limits its requests.
	cfg.QPS, cfg.Burst = -1, 0
	return cfg, nil
}

// Namespace is the one that the context of a cluster names, as kubectl would
// use it.
func (c *Contexts) Namespace(cluster string) string {
	if at := c.raw.Contexts[cluster]; at != nil && at.Namespace != "" {
		return at.Namespace
	}
	return metav1.NamespaceDefault
}
