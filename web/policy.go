// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/fleet"
)

// policyPage is one policy: what it holds, where it sends what, and what of it is not in
// effect.
func (s *Server) policyPage(q *request) error {
	ref := fleet.PolicyRef{Namespace: q.PathValue("namespace"), Name: q.PathValue("name")}
	if ref.Namespace == "-" {
		ref.Namespace = ""
	}
	p, ok := q.state.Snapshot.Policies.Get(ref.Key())
	if !ok || !strings.EqualFold(q.PathValue("kind"), ref.Kind()) {
		return unknown("the fleet has no %s %s at this commit", q.PathValue("kind"), strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/"))
	}
	o := s.views.of(q)
	b := &policyBody{links: q.links, Title: ref.String(), Policy: p, Holds: q.holds(o, &ref), Lazy: p.Lazy(), File: p.Origin.String(), FileAt: s.options.Fleet.Forge.File(q.state.Accepted, p.Origin)}
	if commit := q.line.log.Timeline(q.commit.Hash).Edited[p.ID()]; commit != "" {
		c, _, _ := q.line.log.Commit(commit)
		b.Changed = s.commitText(q.links, c)
	}
	b.place(o)
	if err := b.claims(q, o); err != nil {
		return err
	}
	var err error
	if b.Spec, err = yamlOf(p.Spec); err != nil {
		return err
	}
	q.answer(200, "policy", b.Title, b)
	return nil
}

type policyBody struct {
	links
	Title           string
	Policy          *fleet.Policy
	Holds           []*hold
	Lazy            bool
	File, FileAt    string
	Changed         *commitText
	Waves           []policyWave
	Claims          []claim
	Pending         int
	Activate        string
	Spec            string
	Pages           []pageLink
	Claimed, Placed int
	counted         map[string]*tally
}

// policyWave is what a policy has on the clusters of one wave.
type policyWave struct {
	Name     string
	Clusters []policyCluster
}

type policyCluster struct {
	Name, Address string
	Cell          matrixCell
}

// claim is a template that a policy has.
type claim struct {
	Name, Kind, Address string
	Mark                mark
	Text                string
	Clusters            int
	Active              *commitText // of the policy, if it is not the present one
	Pending             string
	Since               *commitText
	Would               []string
}

// place counts what the policy has on each cluster.
func (b *policyBody) place(o *overview) {
	b.counted = map[string]*tally{}
	for _, g := range o.groups {
		for _, r := range g.rows {
			if r.policy != b.Policy.Ref {
				continue
			}
			o.cells(r, func(cluster string, c cell) {
				if b.counted[cluster] == nil {
					b.counted[cluster] = &tally{}
				}
				b.counted[cluster].add(c)
			})
		}
	}
	for _, w := range o.waves {
		shown := policyWave{Name: w.Name}
		for _, name := range w.Clusters {
			if t := b.counted[name]; t != nil {
				shown.Clusters = append(shown.Clusters, policyCluster{name, b.Cluster(name), tallyCell(t)})
				b.Placed++
			}
		}
		if shown.Clusters != nil {
			b.Waves = append(b.Waves, shown)
		}
	}
}

// claimsPerPage is how many templates the page of a policy lists.
const claimsPerPage = 100

func (b *policyBody) claims(q *request, o *overview) error {
	page, err := q.number("page", 1, 100_000)
	if err != nil {
		return err
	}
	var rows []*row
	for _, g := range o.groups {
		for _, r := range g.rows {
			if r.policy == b.Policy.Ref {
				rows = append(rows, r)
				if r.Binding.Pending != nil {
					b.Pending++
				}
			}
		}
	}
	b.Claimed = len(rows)
	slices.SortStableFunc(rows, func(x, y *row) int { return cmp.Compare(x.tally.worst(), y.tally.worst()) })
	pages := max((len(rows)+claimsPerPage-1)/claimsPerPage, 1)
	if page < 1 || page > pages {
		return unknown("page=%d: there are %d", page, pages)
	}
	for n := range pages {
		if pages > 1 {
			b.Pages = append(b.Pages, pageLink{n + 1, q.again("page", fmt.Sprint(n+1)), n+1 == page})
		}
	}
	for _, r := range rows[(page-1)*claimsPerPage : min(page*claimsPerPage, len(rows))] {
		b.Claims = append(b.Claims, q.claim(b.Policy, r))
	}
	if b.Pending > 0 {
		b.Activate = "fairlead activate " + b.Policy.Ref.Name
		if b.Policy.Ref.Namespace != "" {
			b.Activate += " -n " + b.Policy.Ref.Namespace
		}
	}
	return nil
}

func (q *request) claim(p *fleet.Policy, r *row) claim {
	c := claim{Name: r.id.Name, Kind: shortKind(r.id), Address: q.Template(r.id, ""), Mark: r.tally.worst(), Clusters: len(r.Works)}
	if c.Text = (&group{tally: r.tally}).text(); r.tally.all() == 0 {
		c.Text = "on no cluster"
	}
	if a := r.Active; a != nil && (a.Policy.Delayed != p.Delayed || a.Policy.Ref != p.Ref) {
		c.Active = q.hashText(a.PolicyCommit)
	}
	if r.Pending == nil {
		return c
	}
	c.Pending, c.Since = r.Pending.Reason, q.hashText(r.Pending.Since)
	for _, w := range q.state.Waiting(r.Binding) {
		c.Would = append(c.Would, fmt.Sprintf("%s on %s", w.Action, w.Cluster))
	}
	return c
}

// hashText is a commit of the line as pages name it; nil if the line does not have it.
func (q *request) hashText(hash string) *commitText {
	c, _, ok := q.line.log.Commit(hash)
	if !ok {
		return nil
	}
	return q.server.commitText(q.links, c)
}

// policiesPage is a list of the policies.
func (s *Server) policiesPage(q *request) error {
	o := s.views.of(q)
	b := &policiesBody{links: q.links}
	tallies, pending := map[fleet.PolicyRef]*tally{}, map[fleet.PolicyRef]int{}
	for _, r := range o.rows.All() {
		if tallies[r.policy] == nil {
			tallies[r.policy] = &tally{}
		}
		tallies[r.policy].join(&r.tally)
		if r.Binding != nil && r.Pending != nil {
			pending[r.policy]++
		}
	}
	for p := range q.state.Snapshot.Policies.Values() {
		l := policyLine{Namespace: p.Ref.Namespace, Name: p.Ref.Name, Address: q.Policy(p.Ref), Claims: o.claims.At(p.Ref.Key()), Pending: pending[p.Ref], Text: "nothing", Mark: markAbsent, File: p.Origin.String()}
		if t := tallies[p.Ref]; t != nil && t.all() > 0 {
			l.Mark, l.Text = t.worst(), (&group{tally: *t}).text()
		}
		b.Policies = append(b.Policies, l)
	}
	slices.SortStableFunc(b.Policies, func(x, y policyLine) int { return cmp.Compare(x.Mark, y.Mark) })
	q.answer(200, "policies", "Policies", b)
	return nil
}

type policiesBody struct {
	links
	Policies []policyLine
}

type policyLine struct {
	Namespace, Name, Address, Text, File string
	Mark                                 mark
	Claims, Pending                      int
}

// yamlOf is a value as YAML.
func yamlOf(value any) (string, error) {
	raw, err := yaml.Marshal(value)
	return string(raw), err
}
