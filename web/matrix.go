// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
)

// mostColumns is how many clusters have a column each; more share one by wave.
const mostColumns = 24

// linesPerPage is how many rows a page has, those of namespaces among them.
const linesPerPage = 50

// filters are what the counters above the matrix show, worst first.
var filters = []string{"failed", "unknown", "behind", "held", "rolling", "deferred"}

// matrixPage is the fleet: templates by namespace, clusters by wave.
func (s *Server) matrixPage(q *request) error {
	v, err := q.matrixQuery()
	if err != nil {
		return err
	}
	o := s.views.of(q)
	m := &matrixBody{matrixQuery: v, overview: o, links: q.links, Filter: v.show}
	m.Seen = o.members != nil
	m.counters()
	if err := m.columns(); err != nil {
		return err
	}
	if err := m.lines(); err != nil {
		return err
	}
	q.answer(200, "matrix", "Fleet", m)
	return nil
}

// matrixQuery is what a visitor wants to see of the matrix.
type matrixQuery struct {
	show         string
	open, closed map[string]bool // namespaces
	page         int
	wave         int // whose clusters have columns, counted from 1; 0 is none
	given        url.Values
}

// most parameters of one name that are read.
const mostValues = 200

func (q *request) matrixQuery() (v matrixQuery, err error) {
	if v.show, err = q.one("show", append([]string{"all"}, filters...)...); err != nil {
		return v, err
	}
	if v.page, err = q.number("page", 1, 1_000_000); err != nil {
		return v, err
	}
	if v.wave, err = q.number("wave", 0, 10_000); err != nil {
		return v, err
	}
	v.given = q.URL.Query()
	v.open, v.closed = map[string]bool{}, map[string]bool{}
	for parameter, names := range map[string]map[string]bool{"open": v.open, "close": v.closed} {
		values := v.given[parameter]
		if len(values) > mostValues {
			return v, malformed("%s= is given %d times: %d are read at most", parameter, len(values), mostValues)
		}
		for _, name := range values {
			names[name] = true
		}
	}
	return v, nil
}

// number returns the value of a parameter that is a number up to most.
func (q *request) number(parameter string, without, most int) (int, error) {
	text, err := q.one(parameter)
	if err != nil || text == "" {
		return without, err
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, malformed("%s=%q must be a number from 0 to %d", parameter, text, most)
	}
	return n, nil
}

// matrixBody is the matrix as its template shows it.
type matrixBody struct {
	matrixQuery
	*overview
	links
	Filter   string
	Seen     bool // members were asked
	Counters []counter
	Waves    []waveHead
	Columns  []column
	Groups   []groupRows
	Pages    []pageLink
	More     string // the address of the next page
	Nothing  string
}

// counter is a number that is a link to what it counts.
type counter struct {
	Word, Class, Glyph, Address string
	N                           int32
	On                          bool
}

// waveHead is the head of a wave's columns.
type waveHead struct {
	Name    string
	N       int // columns
	All     int // clusters
	Address string
	Open    bool
}

// column is one cluster, or all of a wave.
type column struct {
	Name    string
	Address string
	Mark    mark // the worst there, for the head
	wave    int
	cluster int // its number; -1 for a wave
	First   bool
}

// groupRows is a namespace with the rows that are shown of it.
type groupRows struct {
	Name, ID, Address, Text string
	Open                    bool
	Mark                    mark
	Cells                   []matrixCell
	Rows                    []matrixRow
	N                       int
	Rest                    int    // rows that are folded because all is well there
	RestAddress             string // where they are shown
	Continued               bool   // its head is on an earlier page
}

// matrixRow is one template.
type matrixRow struct {
	Name, Kind, ID, Address string
	Policy, PolicyAddress   string
	Follows                 bool
	Mark                    mark
	Cells                   []matrixCell
}

// matrixCell is what one column says of a template, or of a namespace.
type matrixCell struct {
	Class, Text, Small, Title, Label, Address string
	First                                     bool
}

type pageLink struct {
	N       int
	Address string
	On      bool
}

// address is that of the same matrix with other parameters.
func (m *matrixBody) address(change func(url.Values)) string {
	query := url.Values{}
	for _, name := range []string{"show", "open", "close", "wave"} {
		for _, value := range m.given[name] {
			query.Add(name, value)
		}
	}
	change(query)
	return m.with("/", query)
}

func (m *matrixBody) counters() {
	for _, word := range filters {
		n := m.total.of(word)
		if n == 0 && m.show != word && (word == "unknown" || !m.Seen && (word == "rolling" || word == "failed")) {
			continue
		}
		m.Counters = append(m.Counters, m.counter(word, word, n))
	}
	m.Counters = append(m.Counters, m.counter("all", "all", m.total.all()))
}

func (m *matrixBody) counter(word, class string, n int32) counter {
	c := counter{Word: word, Class: class, N: n, On: m.show == word || word == "all" && m.show == ""}
	for _, s := range signs {
		if s.Word == word {
			c.Glyph = s.Glyph
		}
	}
	c.Address = m.address(func(query url.Values) {
		query.Del("open")
		query.Del("close")
		query.Set("show", word)
		if word == "all" && m.show != "" {
			query.Del("show")
		}
	})
	return c
}

// columns has a column for each cluster, or for each wave if there are too many.
func (m *matrixBody) columns() error {
	if m.wave > len(m.waves) {
		return unknown("wave=%d: the fleet has %d", m.wave, len(m.waves))
	}
	folded := len(m.clusters) > mostColumns
	for i, w := range m.waves {
		open := !folded || m.wave == i+1 || len(w.Clusters) == 1
		head := waveHead{Name: w.Name, N: 1, All: len(w.Clusters), Open: open && folded && len(w.Clusters) > 1}
		if folded && len(w.Clusters) > 1 {
			head.Address = m.address(func(query url.Values) {
				query.Set("wave", strconv.Itoa(i+1))
				if open {
					query.Del("wave")
				}
			})
		}
		if open {
			head.N = len(w.Clusters)
			for k, name := range w.Clusters {
				n := m.number[name]
				m.Columns = append(m.Columns, column{Name: name, Address: m.Cluster(name), Mark: m.clusters[n].worst(), wave: i, cluster: n, First: k == 0})
			}
		} else {
			m.Columns = append(m.Columns, column{Name: plural(len(w.Clusters), "cluster", "clusters"), Address: head.Address, Mark: m.waveTally(i).worst(), wave: i, cluster: -1, First: true})
		}
		m.Waves = append(m.Waves, head)
	}
	return nil
}

// waveTally counts all cells of a wave.
func (m *matrixBody) waveTally(i int) *tally {
	var t tally
	for _, g := range m.groups {
		t.join(&g.waves[i])
	}
	return &t
}

// lines has the rows of the page that is asked for.
func (m *matrixBody) lines() error {
	lines, first := 0, (m.page-1)*linesPerPage
	visible := func() bool { return lines >= first && lines < first+linesPerPage }
	for _, g := range m.groups {
		rows := m.shown(g)
		if len(rows) == 0 {
			continue
		}
		open := m.isOpen(g)
		shown := groupRows{Name: g.Name, ID: g.partID(), Open: open, Mark: g.tally.worst(), N: len(g.rows), Text: g.text()}
		shown.Address = m.toggle(g, open)
		if shown.Name == "" {
			shown.Name = "(no namespace)"
		}
		headHere := visible()
		lines++
		if open {
			var rest int
			rows, rest = m.interesting(g, rows)
			for _, r := range rows {
				if visible() {
					shown.Rows = append(shown.Rows, m.row(r))
				}
				lines++
			}
			if rest > 0 {
				if visible() {
					shown.Rest, shown.RestAddress = rest, m.toggle(g, false)
				}
				lines++
			}
		}
		if headHere || len(shown.Rows) > 0 || shown.Rest > 0 {
			shown.Continued = !headHere
			shown.Cells = m.groupCells(g)
			m.Groups = append(m.Groups, shown)
		}
	}
	m.paged(lines)
	if m.page < 1 || first >= lines && m.page > 1 {
		return unknown("page=%d: there are %d", m.page, len(m.Pages))
	}
	if lines == 0 {
		m.Nothing = "There are no templates."
		if m.show != "" && m.show != "all" {
			m.Nothing = "Nothing is " + m.show + "."
		}
	}
	return nil
}

// shown are the rows of a group that the filter lets through.
func (m *matrixBody) shown(g *group) []*row {
	if m.show == "" || m.show == "all" {
		return g.rows
	}
	if g.tally.of(m.show) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(g.rows), func(r *row) bool { return r.tally.of(m.show) == 0 })
}

// isOpen reports whether the rows of a group are shown: if a visitor has said so, if
// there is something to look at, or if it is all there is.
func (m *matrixBody) isOpen(g *group) bool {
	switch {
	case m.open[g.Name]:
		return true
	case m.closed[g.Name]:
		return false
	case m.show == "all":
		return true
	}
	return m.show != "" || !g.well() || len(m.groups) == 1
}

// interesting are the first rows of an open group, unless a visitor has opened it: those
// below, where all is well, are only counted. Fewer than three are not worth it.
func (m *matrixBody) interesting(g *group, rows []*row) (shown []*row, rest int) {
	if m.show != "" || m.open[g.Name] || g.well() {
		return rows, 0
	}
	first := slices.IndexFunc(rows, func(r *row) bool { return r.tally.worst() >= markCurrent })
	if first < 0 || len(rows)-first < 3 {
		return rows, 0
	}
	return rows[:first], len(rows) - first
}

// toggle is the address at which a group is opened or closed.
func (m *matrixBody) toggle(g *group, open bool) string {
	return m.address(func(query url.Values) {
		for parameter, names := range map[string]map[string]bool{"open": m.open, "close": m.closed} {
			query.Del(parameter)
			for name := range names {
				if name != g.Name {
					query.Add(parameter, name)
				}
			}
			slices.Sort(query[parameter])
		}
		if open {
			query.Add("close", g.Name)
		} else {
			query.Add("open", g.Name)
		}
	})
}

// partID is the id of a group on the page.
func (g *group) partID() string { return "ns-" + url.PathEscape(g.Name) }

// text is how a namespace is, in a few words.
func (g *group) text() string {
	switch {
	case g.tally.all() == 0:
		return "sent nowhere"
	case g.well():
		return "all current"
	}
	text := ""
	for _, word := range filters {
		if n := g.tally.of(word); n > 0 {
			if text != "" {
				text += ", "
			}
			text += fmt.Sprintf("%d %s", n, word)
		}
	}
	return text
}

func (m *matrixBody) row(r *row) matrixRow {
	out := matrixRow{Name: r.id.Name, Kind: shortKind(r.id), ID: "row-" + url.PathEscape(r.id.Key()), Address: m.Template(r.id, ""), Follows: r.follows, Mark: r.tally.worst()}
	if r.policy != (fleet.PolicyRef{}) {
		out.Policy, out.PolicyAddress = r.policy.Name, m.Policy(r.policy)
	}

	cells := map[string]cell{}
	waves := make([]tally, len(m.waves))
	m.cells(r, func(cluster string, c cell) {
		cells[cluster] = c
		if n, known := m.number[cluster]; known {
			waves[m.clusters[n].wave].add(c)
		}
	})
	for _, col := range m.Columns {
		if col.cluster < 0 {
			out.Cells = append(out.Cells, m.waveCell(r.id, col, &waves[col.wave]))
			continue
		}
		c, there := cells[col.Name]
		if !there {
			out.Cells = append(out.Cells, matrixCell{Class: markAbsent.Class(), Text: markAbsent.Glyph(), First: col.First})
			continue
		}
		out.Cells = append(out.Cells, matrixCell{Class: c.Class(), Text: c.Text(), Small: c.Replicas(), Title: c.Title(),
			Label: r.id.Name + " on " + col.Name + ": " + c.Says(), Address: m.Template(r.id, col.Name), First: col.First})
	}
	return out
}

// waveCell is what a column of a whole wave says of a template.
func (m *matrixBody) waveCell(id object.ID, col column, t *tally) matrixCell {
	c := tallyCell(t)
	c.First, c.Address = col.First, m.Template(id, "")
	if t.all() == 0 {
		c.Address = ""
	}
	c.Label = id.Name + " in " + m.waves[col.wave].Name + ": " + c.Title
	return c
}

// tallyCell is several cells as one: the worst of them, and how many.
func tallyCell(t *tally) matrixCell {
	worst, all := t.worst(), t.all()
	c := matrixCell{Class: worst.Class(), Text: worst.Glyph()}
	switch n := t.marks[worst]; {
	case worst == markAbsent:
		c.Title = markAbsent.Word()
		return c
	case n < all:
		c.Text, c.Small = fmt.Sprintf("%s %d", worst.Glyph(), n), fmt.Sprintf("/%d", all)
	case all > 1:
		c.Small = fmt.Sprint(all)
	}
	for m, n := range t.marks {
		if n == 0 || mark(m) == markAbsent {
			continue
		}
		if c.Title != "" {
			c.Title += ", "
		}
		c.Title += fmt.Sprintf("%d %s", n, mark(m).Word())
	}
	return c
}

// groupCells is what each column says of a namespace as a whole.
func (m *matrixBody) groupCells(g *group) (cells []matrixCell) {
	var open []tally
	for _, col := range m.Columns {
		t := &g.waves[col.wave]
		switch {
		case col.cluster >= 0 && g.clusters != nil:
			t = &g.clusters[col.cluster]
		case col.cluster >= 0:
			if open == nil {
				open = m.byCluster(g)
			}
			t = &open[col.cluster]
		}
		c := tallyCell(t)
		name := col.Name
		if col.cluster < 0 {
			name = m.waves[col.wave].Name
		}
		c.First, c.Label = col.First, name+": "+c.Title
		cells = append(cells, c)
	}
	return cells
}

// byCluster counts the cells of a group by cluster.
func (m *matrixBody) byCluster(g *group) []tally {
	counted := make([]tally, len(m.clusters))
	for _, r := range g.rows {
		m.cells(r, func(cluster string, c cell) {
			if n, known := m.number[cluster]; known {
				counted[n].add(c)
			}
		})
	}
	return counted
}

// paged has links to the pages of so many lines.
func (m *matrixBody) paged(lines int) {
	pages := (lines + linesPerPage - 1) / linesPerPage
	if pages < 2 {
		return
	}
	for n := range pages {
		page := n + 1
		if pages > 15 && page != 1 && page != pages && (page < m.page-3 || page > m.page+3) {
			continue
		}
		address := m.address(func(query url.Values) {
			if page > 1 {
				query.Set("page", strconv.Itoa(page))
			}
		})
		m.Pages = append(m.Pages, pageLink{page, address, page == m.page})
		if page == m.page+1 {
			m.More = address
		}
	}
}

// Legend are the signs that the matrix can show.
func (m *matrixBody) Legend() (legend []sign) {
	for i, s := range signs {
		if !m.Seen && (mark(i) == markUnknown || mark(i) == markBehind) {
			continue
		}
		legend = append(legend, s)
	}
	return legend
}

// shortKind is a kind as kubectl abbreviates it.
func shortKind(id object.ID) string {
	short := object.ShortName(object.ID{Group: id.Group, Kind: id.Kind, Name: "x"})
	return short[:len(short)-2]
}
