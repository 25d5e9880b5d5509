// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"fmt"
	"net/url"

	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
)

// maxClusterName leaves room for "karmada-es-" in a namespace's name.
const maxClusterName = 48

// NewCluster defaults and validates a Cluster document (digest §1.4).
func NewCluster(in *clusterv1alpha1.Cluster, origin Origin, lines map[string]int) (*Cluster, []Problem) {
	c := &check{origin: origin, lines: lines}
	cl := in.DeepCopy()
	if cl.Spec.Zone != "" {
		if len(cl.Spec.Zones) > 0 {
			c.at("spec.zone", "spec.zone and spec.zones are both set; keep spec.zones")
		}
		cl.Spec.Zones, cl.Spec.Zone = []string{cl.Spec.Zone}, ""
	}
	switch name := cl.Name; {
	case name == "":
		c.at("metadata.name", "Cluster has no metadata.name")
	case len(name) > maxClusterName:
		c.at("metadata.name", "cluster name %q has %d characters, at most %d are allowed", name, len(name), maxClusterName)
	case !isDNSLabel(name):
		c.at("metadata.name", "cluster name %q must be a DNS label: lower-case letters, digits and dashes", name)
	}
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
	if len(cl.Spec.Taints) > 0 {
		c.later("spec.taints")
	}
	if len(cl.Spec.ResourceModels) > 0 {
		c.later("spec.resourceModels")
	}
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return &Cluster{Cluster: cl, Origin: origin}, nil
}

func checkEndpoint(c *check, path, endpoint string) {
	if endpoint == "" {
		return
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Scheme == "" || u.Host == "":
		c.at(path, "%s is no URL with a scheme and a host", path)
	case u.User != nil || u.Fragment != "" || u.RawQuery != "":
		// The value is left out: it may hold a password.
		c.at(path, "%s must not carry user information, a query or a fragment", path)
	}
}

func checkLabelValue(c *check, path, value string) {
	for _, msg := range validation.IsValidLabelValue(value) {
		c.at(path, "%s %q: %s", path, value, msg)
	}
}
