// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fairlead/fairlead/eventlog"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// EventsPrinter prints accounts and acts one by one.
type EventsPrinter interface {
	account(a *Account, t *history.Timeline) error
	act(e eventlog.Event) error
}

// NewEventsPrinter returns a printer of lines of JSON if form is "json", of YAML
// documents if it is "yaml", else of text.
func NewEventsPrinter(w io.Writer, form string, screen output.Screen) EventsPrinter {
	switch form {
	case output.FormJSON:
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		return eventLines{enc.Encode}
	case output.FormYAML:
		return eventLines{func(line any) error {
			if _, err := io.WriteString(w, "---\n"); err != nil {
				return err
			}
			return output.Value(w, form, line)
		}}
	}
	return eventText{screen.Writer(w), screen}
}

// eventText prints a heading for each commit and a line for each thing that
// happened to some clusters alike.
type eventText struct {
	w      io.Writer
	screen output.Screen
}

func (p eventText) account(a *Account, t *history.Timeline) error {
	c := a.Commit
	verdict := p.screen.Paint(output.ColorOf(a.Verdict), a.Verdict)
	author := " (" + printable.Line(NameOf(c.Author)) + ")"
	at := source.Short(c.Hash) + "  " + c.Authored.UTC().Format(output.Minute) + "  "
	subject := p.screen.Fit(c.Subject, utf8.RuneCountInString(at+a.Verdict+"  "+author))
	fmt.Fprintf(p.w, "%s%s  %s%s\n", at, verdict, subject, author)
	for _, problem := range a.Problems {
		printable.Fprintf(p.w, "    %s\n", problem.Error())
	}

	table := output.Table{Columns: output.NewColumns("WHAT", "OBJECT", "CLUSTERS", "BECAUSE").
		Text("WHAT", "BECAUSE").Least(leastWhat, "WHAT").Yield("BECAUSE", "CLUSTERS").States("WHAT"), NoHeaders: true, Blank: true, Indent: "    "}
	if len(a.Joined) > 0 {
		table.Rows = append(table.Rows, []any{"joined", "Cluster", output.Names{All: a.Joined, Sep: " "}})
	}
	for rest := a.Changes; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(h propagate.Change) bool { return h.Object != rest[0].Object })
		if n < 0 {
			n = len(rest)
		}
		var object []propagate.Change
		object, rest = rest[:n], rest[n:]
		for _, same := range alike(object, a.Released[object[0].Object]) {
			change := newChange(t, same, a.Released[same[0].Object])
			table.Rows = append(table.Rows, []any{change.Words(), same[0].Object, change.clusters(), strings.Join(Reasons(change.Because), ", ")})
		}
	}

	if err := table.Text(p.w, p.screen); err != nil {
		return err
	}

	for _, same := range actsAlike(a.Acts) {
		if err := p.acts(same); err != nil {
			return err
		}
	}

	return nil
}

// actsAlike groups the acts that were the same on several clusters.
func actsAlike(acts []eventlog.Event) [][]eventlog.Event {
	type key struct {
		what   eventlog.Type
		object eventlog.Object
		text   string
	}
	at := map[key]int{}
	var groups [][]eventlog.Event
	for _, e := range acts {
		k := key{what: e.Type, text: e.Text}
		if e.Object != nil {
			k.object = *e.Object
		}
		i, ok := at[k]
		if !ok || e.Cluster == "" {
			i, at[k] = len(groups), len(groups)
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], e)
	}

	return groups
}

func (p eventText) act(e eventlog.Event) error { return p.acts([]eventlog.Event{e}) }

// acts prints what was done to one object on some clusters, at the time of the
// first.
func (p eventText) acts(same []eventlog.Event) error {
	first := same[0]
	if first.Type == eventlog.Refused || first.Type == eventlog.AwaitingConfirmation {
		return nil // it is in the heading of the commit
	}

	words := []string{"    run", first.Time.UTC().Format(time.RFC3339), string(first.Type)}
	if first.Object != nil {
		words = append(words, first.Object.ID().String())
	}
	var clusters []string
	for _, e := range same {
		if e.Cluster != "" && !slices.Contains(clusters, e.Cluster) {
			clusters = append(clusters, e.Cluster)
		}
	}

	slices.Sort(clusters)
	if len(clusters) > 0 {
		words = append(words, "on", strings.Join(clusters, " "))
	}
	line := strings.Join(words, " ")
	if first.Text != "" {
		line += ": " + first.Text
	}
	_, err := printable.Fprintf(p.w, "%s\n", line)
	return err
}

// EventLine is one event as a line of JSON, which is a contract: fields are
// only added.
type EventLine struct {
	Time time.Time `json:"time"`
	// Source is "git" for what a commit decided, and "run" for what a run did.
	Source   string           `json:"source"`
	Commit   string           `json:"commit,omitempty"`
	Subject  string           `json:"subject,omitempty"`
	What     string           `json:"what"`
	Object   *eventlog.Object `json:"object,omitempty"`
	Cluster  string           `json:"cluster,omitempty"`
	Replicas *Replicas        `json:"replicas,omitempty"`
	Text     string           `json:"text,omitempty"`
	Released []string         `json:"released,omitempty"` // the commits that were held until then
	Because  []Because        `json:"because,omitempty"`
	Problems []EventProblem   `json:"problems,omitempty"`
}

// EventProblem is one reason why a commit is refused.
type EventProblem struct {
	Message string `json:"message"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
}

// eventLines prints a line of JSON, or a document of YAML, for each event on each cluster.
type eventLines struct{ encode func(any) error }

func (p eventLines) account(a *Account, _ *history.Timeline) error {
	c := a.Commit
	from := EventLine{Time: c.Authored, Source: "git", Commit: c.Hash}
	head := from
	head.Subject, head.What = c.Subject, a.Verdict
	for _, problem := range a.Problems {
		head.Problems = append(head.Problems, EventProblem{problem.Message, problem.File, problem.Line})
	}

	lines := []EventLine{head}
	for _, name := range a.Joined {
		line := from
		line.What, line.Cluster = "joined", name
		lines = append(lines, line)
	}

	for _, h := range a.Changes {
		line := from
		object := eventlog.Object(h.Object)
		line.What, line.Object, line.Cluster, line.Text, line.Because = string(h.Type), &object, h.Cluster, h.Text, becauseOf(h)
		if h.Replicas != nil {
			line.Replicas = &Replicas{Before: h.Replicas.Before, After: h.Replicas.After, Asked: h.Replicas.Asked}
		}
		if h.Type == propagate.ChangeReleased {
			line.Released = a.Released[h.Object][h.Cluster]
		}
		lines = append(lines, line)
	}

	for _, line := range lines {
		if err := p.encode(line); err != nil {
			return err
		}
	}

	for _, e := range a.Acts {
		if err := p.act(e); err != nil {
			return err
		}
	}

	return nil
}

func (p eventLines) act(e eventlog.Event) error {
	return p.encode(EventLine{Time: e.Time, Source: "run", Commit: e.Commit, What: string(e.Type), Object: e.Object, Cluster: e.Cluster, Text: e.Text})
}
