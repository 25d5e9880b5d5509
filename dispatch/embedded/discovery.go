// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"net/http"
	"runtime"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// versionInfo is that of the libraries, so that clients expect the right things.
var versionInfo = version.Info{
	Major: "1", Minor: "36", GitVersion: "v1.36.6+fairlead.embedded",
	GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
}

// group is a group with its versions and their kinds, in order.
type group struct {
	name     string
	versions []string
	kinds    map[string][]*kind
}

func (s *store) groups() []*group {
	var out []*group
	for _, k := range s.all() {
		var g *group
		if len(out) > 0 && out[len(out)-1].name == k.Group {
			g = out[len(out)-1]
		} else {
			g = &group{name: k.Group, kinds: map[string][]*kind{}}
			out = append(out, g)
		}
		if g.kinds[k.Version] == nil {
			g.versions = append(g.versions, k.Version)
		}
		g.kinds[k.Version] = append(g.kinds[k.Version], k)
	}
	return out
}

func (g *group) api() metav1.APIGroup {
	out := metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: g.name}
	for _, v := range g.versions {
		gv := schema.GroupVersion{Group: g.name, Version: v}
		out.Versions = append(out.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: v})
	}
	out.PreferredVersion = out.Versions[0]
	return out
}

// discover serves /api, /apis and /openapi/*.
func (s *Server) discover(w http.ResponseWriter, r *http.Request, path string) {
	if strings.HasPrefix(path, "openapi/") {
		s.openapi(w, r, path)
		return
	}
	legacy := path == "api"
	var groups []*group
	for _, g := range s.store.groups() {
		if (g.name == "") == legacy {
			groups = append(groups, g)
		}
	}
	accept := r.Header.Get("Accept")
	switch {
	case strings.Contains(accept, "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"):
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		send(w, http.StatusOK, aggregated(groups))
	case legacy:
		send(w, http.StatusOK, metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"},
			Versions: []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{
				{ClientCIDR: "0.0.0.0/0", ServerAddress: strings.TrimPrefix(s.url, "http://")},
			},
		})
	default:
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, g := range groups {
			list.Groups = append(list.Groups, g.api())
		}
		send(w, http.StatusOK, list)
	}
}

func aggregated(groups []*group) apidiscoveryv2.APIGroupDiscoveryList {
	list := apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"},
	}
	for _, g := range groups {
		item := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.name}}
		for _, v := range g.versions {
			version := apidiscoveryv2.APIVersionDiscovery{Version: v, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
			for _, k := range g.kinds[v] {
				version.Resources = append(version.Resources, k.discovery())
			}
			item.Versions = append(item.Versions, version)
		}
		list.Items = append(list.Items, item)
	}
	return list
}

func (k *kind) discovery() apidiscoveryv2.APIResourceDiscovery {
	scope := apidiscoveryv2.ScopeCluster
	if k.namespaced {
		scope = apidiscoveryv2.ScopeNamespace
	}
	gvk := &metav1.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
	out := apidiscoveryv2.APIResourceDiscovery{
		Resource: k.resource, ResponseKind: gvk, Scope: scope, SingularResource: k.singular,
		Verbs: verbs, ShortNames: k.short, Categories: k.categories,
	}
	if k.status {
		out.Subresources = append(out.Subresources, apidiscoveryv2.APISubresourceDiscovery{
			Subresource: "status", ResponseKind: gvk, Verbs: []string{"get", "patch", "update"},
		})
	}
	if k.scales() {
		out.Subresources = append(out.Subresources, apidiscoveryv2.APISubresourceDiscovery{
			Subresource: "scale", ResponseKind: &scaleKind, Verbs: []string{"get", "patch", "update"},
		})
	}
	return out
}

var scaleKind = metav1.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}

func (s *Server) discoverGroup(w http.ResponseWriter, name string) {
	for _, g := range s.store.groups() {
		if g.name == name && name != "" {
			send(w, http.StatusOK, g.api())
			return
		}
	}
	http.Error(w, "404 page not found", http.StatusNotFound)
}

func (s *Server) discoverVersion(w http.ResponseWriter, r *http.Request, gv schema.GroupVersion) {
	list := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: gv.String(),
	}
	for _, k := range s.store.all() {
		if k.GroupVersion() != gv {
			continue
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: k.resource, SingularName: k.singular, Namespaced: k.namespaced, Kind: k.Kind,
			Verbs: verbs, ShortNames: k.short, Categories: k.categories,
		})
		if k.status {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: k.resource + "/status", Namespaced: k.namespaced, Kind: k.Kind, Verbs: []string{"get", "patch", "update"},
			})
		}
	}
	for _, k := range s.store.all() {
		if k.GroupVersion() == gv && k.scales() {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: k.resource + "/scale", Namespaced: true, Group: scaleKind.Group, Version: scaleKind.Version, Kind: scaleKind.Kind,
				Verbs: []string{"get", "patch", "update"},
			})
		}
	}
	if len(list.APIResources) == 0 {
		http.NotFound(w, r)
		return
	}
	send(w, http.StatusOK, list)
}
