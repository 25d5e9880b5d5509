// SPDX-License-Identifier: Apache-2.0

package push

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/dispatch/member"
)

// Resource is a kind as a member serves it.
type Resource struct {
	schema.GroupVersionKind
	Plural     string
	Namespaced bool

	singular   string
	short      []string
	categories []string
}

// String reads "deployments.apps".
func (r Resource) String() string {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}.String()
}

const asDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"

// Find returns the resource that a user of kubectl means by a word: its
// plural, singular or short name, or its kind, each with or without a group
// (deployments.apps) or a version and group (deployments.v1.apps). Of several
// the first counts that the member lists. The error NotServed is certain.
func (r *Reader) Find(ctx context.Context, word string) (Resource, error) {
	all, err := r.resources(ctx)
	if err != nil {
		return Resource{}, inTime(ctx, err)
	}
	return find(all, word)
}

// find is the resource among all that a word means.
func find(all []Resource, word string) (Resource, error) {
	name, group, grouped := strings.Cut(strings.ToLower(word), ".")
	in := func(res Resource) bool {
		return !grouped || res.Group == group || res.Version+"."+res.Group == group
	}
	for _, means := range []func(Resource) bool{
		func(res Resource) bool {
			return name == res.Plural || name == res.singular || name == strings.ToLower(res.Kind)
		},
		func(res Resource) bool { return slices.Contains(res.short, name) },
	} {
		if i := slices.IndexFunc(all, func(res Resource) bool { return in(res) && means(res) }); i >= 0 {
			return all[i], nil
		}
	}
	return Resource{}, noResource(word)
}

func noResource(word string) error {
	return &member.Error{Reason: member.NotServed, Err: fmt.Errorf("the cluster serves no resource %q", word)}
}

// FindAll returns the resources of a category, such as all, or else the one that Find
// returns. Of several versions of a resource the one counts that the member lists
// first.
func (r *Reader) FindAll(ctx context.Context, word string) ([]Resource, error) {
	all, err := r.resources(ctx)
	if err != nil {
		return nil, inTime(ctx, err)
	}

	var found []Resource
	for _, res := range all {
		same := func(other Resource) bool { return other.String() == res.String() }
		if slices.Contains(res.categories, strings.ToLower(word)) && !slices.ContainsFunc(found, same) {
			found = append(found, res)
		}
	}
	if len(found) > 0 {
		return found, nil
	}

	one, err := find(all, word)
	if err != nil {
		return nil, err
	}
	return []Resource{one}, nil
}

// resources are those that the member can list, the core group first, then in
// the member's own order, each group by its preferred version first.
func (r *Reader) resources(ctx context.Context) ([]Resource, error) {
	var all []Resource
	for _, root := range []string{"/api", "/apis"} {
		found, versions, err := r.groups(ctx, root)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
		for _, gv := range versions {
			found, err := r.version(ctx, gv)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// groups are the resources below a root, or from a server that does not aggregate
// the versions of which to ask.
func (r *Reader) groups(ctx context.Context, root string) ([]Resource, []schema.GroupVersion, error) {
	a, err := r.push.send(ctx, request{method: http.MethodGet, path: root, accept: asDiscovery, many: true})
	if err != nil {
		return nil, nil, err
	}
	defer a.done()
	var list apidiscoveryv2.APIGroupDiscoveryList
	if a.status != http.StatusOK || json.Unmarshal(a.body, &list) != nil {
		return nil, nil, apiError(a.status, a.header, a.body, false)
	}
	if list.Kind == "APIGroupDiscoveryList" {
		return aggregated(&list), nil, nil
	}
	versions, err := versionsOf(a)
	return nil, versions, err
}

func aggregated(list *apidiscoveryv2.APIGroupDiscoveryList) (all []Resource) {
	for _, group := range list.Items {
		for _, version := range group.Versions {
			for _, found := range version.Resources {
				if found.ResponseKind == nil || !slices.Contains(found.Verbs, "list") {
					continue
				}
				all = append(all, Resource{
					GroupVersionKind: schema.GroupVersionKind{Group: group.Name, Version: version.Version, Kind: found.ResponseKind.Kind},
					Plural:           found.Resource,
					Namespaced:       found.Scope == apidiscoveryv2.ScopeNamespace,
					singular:         found.SingularResource,
					short:            found.ShortNames,
					categories:       found.Categories,
				})
			}
		}
	}
	return all
}

// versionsOf reads what a server answers that does not aggregate: the groups,
// or of the core group the versions.
func versionsOf(a answer) ([]schema.GroupVersion, error) {
	var groups metav1.APIGroupList
	var core metav1.APIVersions
	if err := errors.Join(json.Unmarshal(a.body, &groups), json.Unmarshal(a.body, &core)); err != nil {
		return nil, notKubernetes(a.status)
	}
	var all []schema.GroupVersion
	switch groups.Kind {
	case "APIVersions":
		for _, version := range core.Versions {
			all = append(all, schema.GroupVersion{Version: version})
		}
		return all, nil
	case "APIGroupList":
		for _, group := range groups.Groups {
			for _, v := range slices.Concat([]metav1.GroupVersionForDiscovery{group.PreferredVersion}, group.Versions) {
				if gv := (schema.GroupVersion{Group: group.Name, Version: v.Version}); !slices.Contains(all, gv) {
					all = append(all, gv)
				}
			}
		}
		return all, nil
	}
	return nil, notKubernetes(a.status)
}

// version reads the resources of one version. One that the member lists and
// cannot serve now, such as an aggregated API that is down, has none.
func (r *Reader) version(ctx context.Context, gv schema.GroupVersion) ([]Resource, error) {
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	a, err := r.push.send(ctx, request{method: http.MethodGet, path: path})
	if err != nil {
		return nil, err
	}
	defer a.done()
	var list metav1.APIResourceList
	if a.status != http.StatusOK || json.Unmarshal(a.body, &list) != nil {
		return nil, nil //nolint:nilerr // a group that does not answer has no kinds for us
	}
	var all []Resource
	for _, found := range list.APIResources {
		if strings.Contains(found.Name, "/") || !slices.Contains(found.Verbs, "list") {
			continue
		}
		all = append(all, Resource{
			GroupVersionKind: gv.WithKind(found.Kind),
			Plural:           found.Name,
			Namespaced:       found.Namespaced,
			singular:         found.SingularName,
			short:            found.ShortNames,
			categories:       found.Categories,
		})
	}
	return all, nil
}

func (r Resource) endpoint() endpoint { return endpoint{r.Plural, r.Namespaced} }
