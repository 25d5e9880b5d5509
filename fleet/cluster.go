// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/schedule"
)

// maxClusterName leaves room for "karmada-es-" in the name of a namespace.
const maxClusterName = 48

// NewCluster defaults and validates a Cluster document (digest §1.4).
func NewCluster(in *clusterv1alpha1.Cluster, origin Origin, lines map[string]int) (*Cluster, []Problem) {
	return build(clusters{}, in.DeepCopy(), &check{origin: origin, lines: lines})
}

// clusters is the kind Cluster.
type clusters struct{}

func (clusters) Names() Names {
	return Names{clusterv1alpha1.GroupVersion, []string{clusterv1alpha1.KindCluster}}
}

func (clusters) ID(c *Cluster) object.ID  { return c.ID() }
func (clusters) Key(c *Cluster) string    { return c.Name }
func (clusters) Origin(c *Cluster) Origin { return c.Origin }
func (clusters) Equal(a, b *Cluster) bool { return reflect.DeepEqual(a, b) }

// Same implements told.
func (clusters) Same(a, b *Cluster) bool { return reflect.DeepEqual(a.Cluster, b.Cluster) }

func (clusters) Load(s *Snapshot) ordered.Map[*Cluster]       { return s.Clusters }
func (clusters) Store(s *Snapshot, all ordered.Map[*Cluster]) { s.Clusters = all }

// Prepare refuses amounts that would take too long to decode.
func (clusters) Prepare(s *Source) ([]*Finding, []Problem) {
	for _, path := range []string{"spec.resourceModels", "status.resourceSummary"} {
		amounts, _, _ := unstructured.NestedFieldNoCopy(s.Object, strings.Split(path, ".")...)
		if Immense(amounts) {
			return nil, []Problem{s.problem(path, "%s contains a value that is not a usable quantity", path)}
		}
	}
	return nil, nil
}

// Default replaces the deprecated spec.zone.
func (clusters) Default(cl *clusterv1alpha1.Cluster, c *check) {
	if cl.Spec.Zone == "" {
		return
	}
	if len(cl.Spec.Zones) > 0 {
		c.at("spec.zone", "spec.zone and spec.zones are both set; keep spec.zones")
	}
	cl.Spec.Zones, cl.Spec.Zone = []string{cl.Spec.Zone}, ""
}

func (clusters) Validate(cl *clusterv1alpha1.Cluster, c *check) *Cluster {
	checkClusterName(c, cl.Name)
	if cl.Spec.SyncMode == "" {
		c.at("spec.syncMode", "spec.syncMode is required: Push or Pull")
	} else {
		oneOf(c, "spec.syncMode", cl.Spec.SyncMode, clusterv1alpha1.Push, clusterv1alpha1.Pull)
	}

	checkEndpoint(c, "spec.apiEndpoint", cl.Spec.APIEndpoint)
	for path, value := range map[string]string{"spec.provider": cl.Spec.Provider, "spec.region": cl.Spec.Region} {
		checkLabelValue(c, path, value)
	}
	for i, zone := range cl.Spec.Zones {
		checkLabelValue(c, fmt.Sprintf("spec.zones[%d]", i), zone)
	}

	checkTaints(c, cl.Spec.Taints)
	checkProxy(c, cl.Spec.ProxyURL)
	checkSecret(c, "spec.secretRef", cl.Spec.SecretRef)
	checkSecret(c, "spec.impersonatorSecretRef", cl.Spec.ImpersonatorSecretRef)
	cl.Spec.ResourceModels = resourceModels(c, cl.Spec.ResourceModels)
	if len(c.problems) > 0 {
		return nil
	}

	return &Cluster{Cluster: cl, Origin: c.origin, Candidate: schedule.NewCluster(cl, ReadyTaints(ReadyCondition(cl.Status.Conditions))...)}
}

func checkClusterName(c *check, name string) {
	switch {
	case name == "":
		c.at("metadata.name", "Cluster has no metadata.name")
	case len(name) > maxClusterName:
		c.at("metadata.name", "cluster name %q has %d characters, at most %d are allowed", name, len(name), maxClusterName)
	case !isDNSLabel(name):
		c.at("metadata.name", "cluster name %q must be a DNS label: lower-case letters, digits and dashes", name)
	}
}

func checkTaints(c *check, taints []corev1.Taint) {
	type id struct {
		key    string
		effect corev1.TaintEffect
	}

	seen := map[id]bool{}
	for i, t := range taints {
		path := fmt.Sprintf("spec.taints[%d]", i)
		for _, msg := range validation.IsQualifiedName(t.Key) {
			c.at(path+".key", "%s.key %q: %s", path, t.Key, msg)
		}

		checkLabelValue(c, path+".value", t.Value)
		if t.Effect == "" {
			c.at(path, "%s.effect is required: NoSchedule or NoExecute", path)
		} else {
			oneOf(c, path+".effect", t.Effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)
		}

		if seen[id{t.Key, t.Effect}] {
			c.at(path, "%s: duplicate taint with key %q and effect %q", path, t.Key, t.Effect)
		}

		seen[id{t.Key, t.Effect}] = true
	}
}

func checkProxy(c *check, proxy string) {
	if proxy == "" {
		return
	}
	// The value is left out: it may contain a password.
	u, err := url.Parse(proxy)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme) {
		c.at("spec.proxyURL", "spec.proxyURL must be an http, https or socks5 URL with a host")
	}
}

func checkSecret(c *check, path string, s *clusterv1alpha1.LocalSecretReference) {
	if s != nil && (s.Namespace == "" || s.Name == "") {
		c.at(path, "%s needs a namespace and a name", path)
	}
}

func checkEndpoint(c *check, path, endpoint string) {
	if endpoint == "" {
		return
	}

	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Scheme == "" || u.Host == "":
		c.at(path, "%s must be a URL with a scheme and a host", path)
	case u.User != nil || u.Fragment != "" || u.RawQuery != "":
		// The value is left out: it may contain a password.
		c.at(path, "%s must not carry user information, a query or a fragment", path)
	}
}

func checkLabelValue(c *check, path, value string) {
	for _, msg := range validation.IsValidLabelValue(value) {
		c.at(path, "%s %q: %s", path, value, msg)
	}
}
