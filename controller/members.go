// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/credentials"
	"github.com/fairlead/fairlead/decrypt"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/member/decrypting"
	"github.com/fairlead/fairlead/dispatch/pull"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/metrics"
	"github.com/fairlead/fairlead/reconcile/sharing"
)

// secretTimeout is how long a Secret of a member may take to read.
const secretTimeout = 10 * time.Second

// members connects to the clusters of a Fleet. The credentials of one are the first that
// exist of: the context of its name in the Fleet's kubeconfig, the Secret that its Cluster
// document names, and the Secret CLUSTER-kubeconfig.
type members struct {
	place    place
	secrets  *secrets
	allow    push.Allow
	told     *metrics.Fleets
	branches pull.Branches // nil if the Fleet publishes nothing
	prefix   string        // of the branches' names
	ways     sharing.Members

	mu       sync.Mutex
	contexts *push.Contexts // of the Fleet's kubeconfig; nil until it is read
	keys     *decrypt.Keys  // nil until they are read
	by       map[string]map[string]bool
}

func newMembers(p place, s *secrets, allow push.Allow, told *metrics.Fleets) *members {
	return &members{place: p, secrets: s, allow: allow, told: told, ways: sharing.Alone{}, by: map[string]map[string]bool{}}
}

// connect returns the way to a cluster.
func (m *members) connect(c *fleet.Cluster) (member.Member, error) {
	if c.Spec.SyncMode == clusterv1alpha1.Pull {
		if m.branches == nil {
			return nil, fmt.Errorf("it is a pull cluster: specify where to publish its manifests with spec.publish (%s)", c.Origin)
		}
		return m.ways.Pull(m.branches, m.prefix+c.Name, c)
	}

	ctx, cancel := context.WithTimeout(context.Background(), secretTimeout)
	defer cancel()
	config, err := m.config(ctx, c)
	if err != nil {
		return nil, err
	}

	if m.place.serviceAccount != "" {
		if err := push.Impersonate(config, m.secrets.namespace, m.place.serviceAccount); err != nil {
			return nil, err
		}
	}
	config.Wrap(m.told.Requests(c.Name))
	keys, err := m.decryption(ctx)
	if err != nil {
		return nil, err
	}
	return m.ways.Push(config, c, func(pushed member.Member) member.Member { return decrypting.Wrap(pushed, keys.Manifest) })
}

// decryption returns the keys for what SOPS has encrypted, nil if the Fleet has none.
func (m *members) decryption(ctx context.Context) (*decrypt.Keys, error) {
	if m.place.decryption == "" {
		return nil, nil
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keys == nil {
		data, err := m.secrets.read(ctx, m.place.decryption)
		if err != nil {
			return nil, err
		}
		if m.keys, err = decrypt.Load(data); err != nil {
			return nil, m.secrets.failed(m.place.decryption, err)
		}
	}
	return m.keys, nil
}

// config finds the credentials of a cluster.
func (m *members) config(ctx context.Context, c *fleet.Cluster) (*push.Config, error) {
	config, err := m.context(ctx, c.Name)
	if missing := (*member.NoContextError)(nil); err == nil || !errors.As(err, &missing) {
		return config, err
	}
	if ref := c.Spec.SecretRef; ref != nil {
		return m.named(ctx, c, ref)
	}

	name := c.Name + "-kubeconfig"
	data, err := m.find(ctx, c.Name, name)
	switch {
	case err != nil:
		return nil, err
	case data == nil:
		return nil, m.noCredentials(c)
	}
	return m.single(data, name)
}

// single returns the cluster of a kubeconfig that is of one.
func (m *members) single(data map[string][]byte, secret string) (*push.Config, error) {
	name := m.secrets.title(secret)
	kubeconfig, err := credentials.Kubeconfig(data, name, "")
	if err != nil {
		return nil, err
	}
	return push.ParseCluster(kubeconfig, name, m.allow)
}

// context returns the context of a cluster in the Fleet's kubeconfig.
func (m *members) context(ctx context.Context, cluster string) (*push.Config, error) {
	ref := m.place.kubeConfig.SecretRef
	if ref.Name == "" {
		return nil, &member.NoContextError{Cluster: cluster}
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	if m.contexts == nil {
		data, err := m.secrets.read(ctx, ref.Name)
		if err != nil {
			return nil, err
		}
		kubeconfig, err := credentials.Kubeconfig(data, m.secrets.title(ref.Name), ref.Key)
		if err != nil {
			return nil, err
		}
		if m.contexts, err = push.ParseContexts(kubeconfig, m.secrets.title(ref.Name), m.allow); err != nil {
			return nil, err
		}
	}

	return m.contexts.For(cluster)
}

// named reads the Secret that a Cluster document names. Whoever writes the repository
// names it, so it is one of the Fleet's own namespace.
func (m *members) named(ctx context.Context, c *fleet.Cluster, ref *clusterv1alpha1.LocalSecretReference) (*push.Config, error) {
	if ref.Namespace != "" && ref.Namespace != m.secrets.namespace {
		return nil, fmt.Errorf("spec.secretRef names Secret %s/%s: a cluster's Secret must be in the Fleet's namespace, %s (%s)", ref.Namespace, ref.Name, m.secrets.namespace, c.Origin)
	}

	data, err := m.find(ctx, c.Name, ref.Name)
	switch {
	case err != nil:
		return nil, err
	case data == nil:
		return nil, m.secrets.failed(ref.Name, fmt.Errorf("not found; spec.secretRef names it (%s)", c.Origin))
	}

	if credentials.HasKubeconfig(data) {
		return m.single(data, ref.Name)
	}
	token, ca, err := credentials.Karmada(data, m.secrets.title(ref.Name))
	if err != nil {
		return nil, err
	}
	return push.ParseToken(push.Token{
		Address: c.Spec.APIEndpoint, InsecureSkipTLS: c.Spec.InsecureSkipTLSVerification, Proxy: c.Spec.ProxyURL, Token: token, CA: ca,
	}, m.secrets.title(ref.Name), m.allow)
}

func (m *members) noCredentials(c *fleet.Cluster) error {
	where := fmt.Sprintf("create the Secret %s with a kubeconfig in the key value", m.secrets.key(c.Name+"-kubeconfig"))
	if name := m.place.kubeConfig.SecretRef.Name; name != "" {
		where = fmt.Sprintf("add a context %q to the Secret %s, or %s", c.Name, m.secrets.key(name), where)
	}
	return fmt.Errorf("no credentials: %s (%s)", where, c.Origin)
}

// find reads a Secret for a cluster, and remembers that.
func (m *members) find(ctx context.Context, cluster, secret string) (map[string][]byte, error) {
	m.mu.Lock()
	if m.by[secret] == nil {
		m.by[secret] = map[string]bool{}
	}
	m.by[secret][cluster] = true
	m.mu.Unlock()
	return m.secrets.find(ctx, secret)
}

// changed forgets what was read of a Secret, and returns the clusters that it is for;
// all is set if these are all.
func (m *members) changed(secret string) (clusters []string, all bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if secret == m.place.kubeConfig.SecretRef.Name || secret == m.place.decryption {
		m.contexts, m.keys = nil, nil
		return nil, true
	}
	for cluster := range m.by[secret] {
		clusters = append(clusters, cluster)
	}
	return clusters, false
}
