// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/listing"
	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/printable"
)

// apiReport is the JSON of a command, with the parameters that it takes.
type apiReport struct {
	parameters []string
	write      func(*request, io.Writer) error
}

// apiReports are by the names of their commands.
func apiReports() map[string]apiReport {
	selection := []string{"namespace", "selector", "cluster"}
	reports := map[string]apiReport{
		"status":  {append([]string{"only", "wave"}, selection...), (*request).apiStatus},
		"plan":    {[]string{"base", "head"}, (*request).apiPlan},
		"history": {[]string{"of", "namespace", "cluster"}, (*request).apiHistory},
		"why":     {[]string{"of", "namespace", "cluster"}, (*request).apiWhy},
		"events":  {[]string{"of", "namespace", "cluster", "since"}, (*request).apiEvents},
	}
	for _, noun := range listing.Nouns {
		reports[noun] = apiReport{append([]string{"name"}, selection...), func(q *request, w io.Writer) error { return q.apiList(w, noun) }}
	}
	return reports
}

// maxJSON is how large an answer may be.
const maxJSON = 64 << 20

// apiHandler answers with the JSON that the command of a report's name writes.
func (s *Server) apiHandler() http.Handler {
	reports := apiReports()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := &request{Request: r, server: s, writer: w, line: s.line.Load(), links: links{Prefix: s.options.Prefix}}
		var body bytes.Buffer
		err := q.api(reports, &limited{&body, maxJSON})
		if err == nil {
			q.send(http.StatusOK, "application/json", body.Bytes())
			return
		}
		if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
			return
		}
		q.apiFail(err)
	})
}

func (q *request) api(reports map[string]apiReport, w io.Writer) error {
	report, ok := reports[q.PathValue("report")]
	if !ok {
		return unknown("there is no report %q", q.PathValue("report"))
	}
	for parameter, values := range q.URL.Query() {
		if parameter != "at" && !slices.Contains(report.parameters, parameter) {
			return malformed("%s= is no parameter of %s: it takes %s", parameter, q.PathValue("report"), strings.Join(append(report.parameters, "at"), ", "))
		}
		if len(values) > mostValues {
			return malformed("%s= is given %d times: %d are read at most", parameter, len(values), mostValues)
		}
	}
	if err := q.resolve(); err != nil {
		return err
	}
	return report.write(q, printable.NewWriter(w))
}

// apiFail answers with an error as JSON.
func (q *request) apiFail(err error) {
	code := codeOf(err)
	if seconds := retryAfter(code); seconds > 0 {
		q.writer.Header().Set("Retry-After", fmt.Sprint(seconds))
	}
	if code == http.StatusInternalServerError {
		q.server.options.Log(fmt.Sprintf("GET %s: %v", q.URL.Path, err))
	}
	raw, _ := json.Marshal(map[string]string{"error": printable.Line(err.Error())}) // a text can be written
	q.send(code, "application/json", append(raw, '\n'))
}

// limited refuses what exceeds a limit.
type limited struct {
	io.Writer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, &statusError{http.StatusRequestEntityTooLarge, fmt.Sprintf("the answer has more than %d MiB: ask for less of it", maxJSON>>20)}
	}
	return l.Writer.Write(p)
}

// words are the values of a parameter that may be given more than once, or with commas.
func (q *request) words(parameter string) (words []string) {
	for _, value := range q.URL.Query()[parameter] {
		for word := range strings.SplitSeq(value, ",") {
			if word != "" {
				words = append(words, word)
			}
		}
	}
	return words
}

// selection is what a request selects of a list.
func (q *request) selection() (namespace string, selector labels.Selector, clusters []string, err error) {
	if namespace, err = q.one("namespace"); err != nil {
		return "", nil, nil, err
	}
	text, err := q.one("selector")
	if err != nil {
		return "", nil, nil, err
	}
	if selector, err = labels.Parse(text); err != nil {
		return "", nil, nil, malformed("selector=: %v", err)
	}
	words := q.words("cluster")
	chosen, err := status.Choose(q.state, words)
	if word := (*status.WordError)(nil); errors.As(err, &word) {
		return "", nil, nil, malformed("%v", err)
	}
	if err != nil {
		return "", nil, nil, unknown("%v", err)
	}
	if words != nil {
		for _, c := range chosen {
			clusters = append(clusters, c.Name)
		}
	}
	return namespace, selector, clusters, nil
}

// apiList is get NOUN -o json.
func (q *request) apiList(w io.Writer, noun string) error {
	namespace, selector, clusters, err := q.selection()
	if err != nil {
		return err
	}
	name, err := q.one("name")
	if err != nil {
		return err
	}
	v := &listing.View{State: q.state, Namespace: namespace, Name: name, Selector: selector, Clusters: clusters}
	l := v.List(noun)
	if name != "" && len(l.Items) == 0 {
		return unknown("%s %q not found", noun, name)
	}
	return output.Print(w, []output.List{l}, output.Options{Form: output.Form{Name: output.FormJSON}, Single: name != ""})
}

// apiStatus is status -o json. Without members there is no status to tell.
func (q *request) apiStatus(w io.Writer) error {
	members := q.members()
	if members == nil {
		return unknown("nobody has asked the clusters what they have at this commit; bindings and works say what git decided")
	}
	namespace, selector, clusters, err := q.selection()
	if err != nil {
		return err
	}
	wave, err := q.number("wave", 0, 10_000)
	if err != nil {
		return err
	}
	if wave > 0 && len(status.InWave(q.state, wave)) == 0 {
		return unknown("no policy has a wave %d", wave)
	}
	query := report.MatrixQuery{Clusters: clusters, Only: q.words("only"), Wave: wave}
	for _, word := range query.Only {
		if !slices.Contains(report.Words, word) {
			return malformed("only=%q must be one of %s", word, strings.Join(report.Words, ", "))
		}
	}
	query.Template = func(id object.ID, set map[string]string) bool {
		return (namespace == "" || namespace == id.Namespace) && selector.Matches(labels.Set(set))
	}

	seen := &status.Fleet{Head: q.commit.Hash, State: *q.state, Cells: members.Cells}
	var found output.List
	for _, o := range report.NewStatus(seen, query.Rows(seen)).Objects {
		found.Items = append(found.Items, output.Item{Object: o})
	}
	return output.Print(w, []output.List{found}, output.Options{Form: output.Form{Name: output.FormJSON}})
}

// apiPlan is plan -o json.
func (q *request) apiPlan(w io.Writer) error {
	base, err := q.one("base")
	if err != nil {
		return err
	}
	head, err := q.one("head")
	if err != nil {
		return err
	}
	if head == "" {
		return malformed("head= is required: the revision with the change")
	}
	baseHash, err := q.commitOf("base", cmp.Or(base, q.commit.Hash))
	if err != nil {
		return err
	}
	headHash, err := q.commitOf("head", head)
	if err != nil {
		return err
	}
	p, err := q.plan(baseHash, headHash, cmp.Or(base, q.line.branch), head)
	if err != nil {
		return err
	}
	return output.Value(w, output.FormJSON, p.plan)
}

// reference is the object that of= names; nil if it names none.
func (q *request) reference() (*object.Reference, error) {
	of, err := q.one("of")
	if err != nil || of == "" {
		return nil, err
	}
	namespace, err := q.one("namespace")
	if err != nil {
		return nil, err
	}
	r, err := object.ParseReference([]string{of}, namespace)
	if err != nil {
		return nil, malformed("of=%v", err)
	}
	return &r, nil
}

// followed is the object that of= names, its timeline, and the clusters of cluster=.
func (q *request) followed() (t *history.Timeline, id object.ID, clusters []string, err error) {
	r, err := q.reference()
	if err == nil && r == nil {
		err = malformed("of= is required, such as of=deploy/shop/web")
	}
	if err != nil {
		return nil, id, nil, err
	}
	found := q.find(*r, func(id object.ID) bool { return r.Namespace == "" || r.Namespace == id.Namespace })
	if len(found) == 0 {
		return nil, id, nil, unknown("%s is not a template of the fleet, and never was", r)
	}
	if id, err = r.One(found); err != nil {
		return nil, id, nil, malformed("%v", err)
	}
	t = q.line.log.Timeline(q.commit.Hash, id)
	if clusters, err = t.ClustersCalled(q.words("cluster")); err != nil {
		return nil, id, nil, unknown("%v", err)
	}
	return t, id, clusters, nil
}

// apiHistory is history -o json.
func (q *request) apiHistory(w io.Writer) error {
	t, id, clusters, err := q.followed()
	if err != nil {
		return err
	}
	return output.Value(w, output.FormJSON, report.NewHistory(t, id, q.commit.Hash, clusters))
}

// apiWhy is why -o json.
func (q *request) apiWhy(w io.Writer) error {
	t, id, clusters, err := q.followed()
	if err != nil {
		return err
	}
	now := q.server.options.Now()
	if err := report.Present(t, q.state, id, now); err != nil {
		return unknown("%v", err)
	}
	return output.Value(w, output.FormJSON, report.NewWhy(t, q.state, id, clusters, now))
}

// apiEvents is events --git -o json: a line of JSON for each event.
func (q *request) apiEvents(w io.Writer) error {
	asked, err := q.reference()
	if err != nil {
		return err
	}
	since, err := q.one("since")
	if err != nil {
		return err
	}
	if since != "" {
		if since, err = q.commitOf("since", since); err != nil {
			return err
		}
		if _, place, ok := q.line.log.Commit(since); !ok || place > q.place {
			return unknown("since= is not a commit of %s before this one", q.line.branch)
		}
	}

	ctx, cancel := context.WithTimeout(q.Context(), travelTimeout)
	defer cancel()
	return q.server.travel.do(ctx, func(states *history.States) error {
		n := report.NewEvents(states, asked, q.words("cluster"), report.NewEventsPrinter(w, output.FormJSON, output.Screen{}))
		n.After = since
		if err := n.Fold(q.commit.Hash); err != nil {
			return err
		}
		if asked != nil && len(n.Objects) == 0 {
			return unknown("%s is not a template of the fleet, and never was", asked)
		}
		if _, err := n.ClustersCalled(q.words("cluster")); err != nil {
			return unknown("%v", err)
		}
		return nil
	})
}
