// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/url"
	"strings"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
)

// links makes the addresses of pages, all of them as of one commit. The names in them are
// anybody's.
type links struct {
	Prefix string
	At     string // "" is now
}

// Page is the address of a page without names in its path.
func (l links) Page(path string, pairs ...string) string {
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Add(pairs[i], pairs[i+1])
		}
	}
	return l.with(path, query)
}

func (l links) with(path string, query url.Values) string {
	if l.At != "" {
		query.Set("at", l.At)
	}
	address := l.Prefix + path
	if text := query.Encode(); text != "" {
		address += "?" + text
	}
	return address
}

// Cluster is the address of a cluster.
func (l links) Cluster(name string) string {
	return l.with("/clusters/"+url.PathEscape(name), url.Values{})
}

// Template is the address of a template; with a cluster, of what is said of it there.
func (l links) Template(id object.ID, cluster string) string {
	address := l.with("/templates/"+url.PathEscape(kindOf(id))+"/"+namespaceOf(id.Namespace)+"/"+url.PathEscape(id.Name), url.Values{})
	if cluster != "" {
		address += "#on-" + url.PathEscape(cluster)
	}
	return address
}

// Policy is the address of a policy.
func (l links) Policy(ref fleet.PolicyRef) string {
	return l.with("/policies/"+ref.Kind()+"/"+namespaceOf(ref.Namespace)+"/"+url.PathEscape(ref.Name), url.Values{})
}

// Then is the address of the fleet as of a commit.
func (l links) Then(commit string) string {
	return links{Prefix: l.Prefix, At: commit}.Page("/")
}

// Asset is the address of a file of ours.
func (l links) Asset(name string) string { return l.Prefix + "/assets/" + assetName(name) }

// kindOf is the kind of an object in a path: deployment.apps.
func kindOf(id object.ID) string {
	kind := strings.ToLower(id.Kind)
	if id.Group != "" {
		kind += "." + id.Group
	}
	return kind
}

// namespaceOf is a namespace in a path.
func namespaceOf(namespace string) string {
	if namespace == "" {
		return "-"
	}
	return url.PathEscape(namespace)
}
