// SPDX-License-Identifier: Apache-2.0

package web

import (
	"embed"
	"fmt"
	"html/template"
	"time"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/source"
)

//go:embed pages
var pageFiles embed.FS

// functions are what templates call beside the methods of their values.
var functions = template.FuncMap{
	"short": source.Short, "name": report.NameOf, "count": report.Count,
	"more": func(names []string, shown int) int { return len(names) - shown },
}

// templates are the pages, each with the parts that all have.
var templates = parse("matrix", "template", "holds", "policy", "policies",
	"cluster", "clusters", "timeline", "search", "ruler", "plan", "error")

func parse(names ...string) map[string]*template.Template {
	base := template.Must(template.New("").Funcs(functions).ParseFS(pageFiles, "pages/base.html"))
	all := map[string]*template.Template{}
	for _, name := range names {
		all[name] = template.Must(template.Must(base.Clone()).ParseFS(pageFiles, "pages/"+name+".html"))
	}
	return all
}

// page is what every page shows, around its own body.
type page struct {
	links
	Name, Title string
	Fleet       string
	Branch      string
	Head        *commitText // nil before the first fold
	Commit      *commitText
	Past        bool
	Newer       int    // commits after it
	Prev, Next  string // this page at the neighbouring commits; "" at the ends
	Present     string // this page at the head
	Refusal     string
	Troubles    []string
	SeenAt      string // when members were asked; "" if nobody has
	Search      string
	Version     string // of what is shown at the head
	Body        any
}

// commitText is a commit as pages name it.
type commitText struct {
	Hash, Subject, Author, Age, Date, Address, Forge string
}

// page returns what every page shows.
func (q *request) page(code int, name, title string, body any) *page {
	p := &page{links: q.links, Name: name, Title: title, Fleet: q.server.options.Fleet.Name, Search: q.URL.Query().Get("q"), Body: body}
	if trouble := q.server.trouble.Load(); trouble != nil {
		p.Troubles = append(p.Troubles, "The branch cannot be followed: "+*trouble)
	}
	if unfetched := q.server.unfetched.Load(); unfetched != nil {
		p.Troubles = append(p.Troubles, "The repository is not fetched: "+*unfetched)
	}
	if unasked := q.server.unasked.Load(); unasked != nil {
		p.Troubles = append(p.Troubles, "The clusters are not asked: "+*unasked)
	}
	if q.line == nil {
		return p
	}

	p.Branch, p.Version = q.line.branch, q.server.version(q.line)
	if p.Fleet == "" {
		p.Fleet = q.line.state.Name()
	}
	p.Head = q.server.commitText(q.links, q.line.commit)
	if q.line.refusal != nil {
		p.Refusal = q.line.refusal.Text()
	}
	if q.commit == nil {
		return p
	}
	p.Commit, p.Past = q.server.commitText(q.links, q.commit), q.isPast()
	if m := q.members(); m != nil {
		p.SeenAt = age(q.server.options.Now().Sub(m.At))
	}
	if p.Past && code == 200 {
		commits := q.line.commits()
		p.Newer = len(commits) - 1 - q.place
		p.Present, p.Next = q.otherwise(""), q.otherwise("")
		if next := q.place + 1; next < len(commits)-1 {
			p.Next = q.otherwise(commits[next].Hash)
		}
	}
	if q.place > 0 {
		p.Prev = q.otherwise(q.line.commits()[q.place-1].Hash)
	}
	return p
}

// otherwise is the address of this page at another commit; "" is the head.
func (q *request) otherwise(commit string) string { return q.again("at", source.Short(commit)) }

// commitText returns a commit as pages name it.
func (s *Server) commitText(l links, c *history.LogCommit) *commitText {
	return &commitText{
		Hash: c.Hash, Subject: c.Subject, Author: report.NameOf(c.Author), Age: age(s.options.Now().Sub(c.Authored)),
		Date: c.Authored.UTC().Format(minute), Address: l.Then(source.Short(c.Hash)), Forge: s.options.Fleet.Forge.Commit(c.Hash),
	}
}

// age reads "2d", as kubectl says it.
func age(d time.Duration) string {
	for _, unit := range []struct {
		name string
		long time.Duration
	}{{"y", 365 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}} {
		if n := int(d / unit.long); n > 0 {
			return fmt.Sprintf("%d%s", n, unit.name)
		}
	}
	return "now"
}
