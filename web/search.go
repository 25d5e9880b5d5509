// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// maxQuery is how long a search may be, and maxFound how much it shows of each kind.
const (
	maxQuery = 200
	maxFound = 50
)

// searchPage finds templates, policies, clusters and commits by name. If one of them has
// exactly the name, it is shown.
func (s *Server) searchPage(q *request) error {
	text, err := q.one("q")
	if err != nil {
		return err
	}
	if len(text) > maxQuery {
		return malformed("q= has %d bytes: %d are searched for at most", len(text), maxQuery)
	}
	b := &searchBody{Query: text}
	if text = strings.ToLower(strings.TrimSpace(text)); text != "" {
		b.search(q, text)
	}
	if at := b.only(); at != "" {
		http.Redirect(q.writer, q.Request, at, http.StatusFound)
		return nil
	}
	q.answer(200, "search", "Search", b)
	return nil
}

type searchBody struct {
	Query string
	Found []foundKind
	exact []string
}

type foundKind struct {
	Name  string
	Items []found
	More  int
}

// found is one thing that was found.
type found struct {
	Name, Address, Beside string
	rank                  int
}

// only is the address of the one thing that has exactly the name; "" if none has, or more.
func (b *searchBody) only() string {
	if len(b.exact) == 1 {
		return b.exact[0]
	}
	return ""
}

func (b *searchBody) search(q *request, text string) {
	var clusters, policies, templates, commits []found
	for name := range q.state.Snapshot.Clusters.All() {
		clusters = b.match(clusters, text, found{Name: name, Address: q.Cluster(name)}, name)
	}
	for p := range q.state.Snapshot.Policies.Values() {
		policies = b.match(policies, text, found{Name: p.Ref.String(), Address: q.Policy(p.Ref)}, p.Ref.Name, p.Ref.Namespace+"/"+p.Ref.Name)
	}
	for t := range q.state.Snapshot.Templates.Values() {
		short := shortKind(t.ID)
		templates = b.match(templates, text, found{Name: titleOf(t.ID), Address: q.Template(t.ID, "")},
			t.Name, t.Namespace+"/"+t.Name, short+"/"+t.Name, short+"/"+t.Namespace+"/"+t.Name, t.Kind+"/"+t.Name, t.Kind+"/"+t.Namespace+"/"+t.Name)
	}
	for _, c := range slices.Backward(q.line.commits()) {
		if len(text) >= 4 && strings.HasPrefix(c.Hash, text) || len(text) >= 3 && strings.Contains(strings.ToLower(c.Subject), text) {
			t := q.server.commitText(q.links, c)
			commits = append(commits, found{Name: t.Hash[:7], Address: t.Address, Beside: t.Subject})
			if len(text) >= 7 && strings.HasPrefix(c.Hash, text) {
				b.exact = append(b.exact, t.Address)
			}
		}
	}
	b.add("Clusters", clusters)
	b.add("Policies", policies)
	b.add("Templates", templates)
	b.add("Commits", commits)
}

// match adds what has the text in one of its names.
func (b *searchBody) match(all []found, text string, f found, names ...string) []found {
	f.rank = 3
	for _, name := range names {
		switch name = strings.ToLower(name); {
		case name == text:
			f.rank = 0
		case strings.HasPrefix(name, text):
			f.rank = min(f.rank, 1)
		case strings.Contains(name, text):
			f.rank = min(f.rank, 2)
		}
	}
	if f.rank == 3 {
		return all
	}
	if f.rank == 0 {
		b.exact = append(b.exact, f.Address)
	}
	return append(all, f)
}

func (b *searchBody) add(name string, items []found) {
	if len(items) == 0 {
		return
	}
	slices.SortStableFunc(items, func(x, y found) int { return cmp.Compare(x.rank, y.rank) })
	k := foundKind{Name: name, Items: items}
	if k.More = len(items) - maxFound; k.More > 0 {
		k.Items = items[:maxFound]
	}
	b.Found = append(b.Found, k)
}
