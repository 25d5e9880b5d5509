// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/reconcile"
)

// eventsPrinter prints what happened, as it is told.
type eventsPrinter interface {
	account(a *account, t *trail) error
	act(e reconcile.Event) error
}

func newEventsPrinter(w io.Writer, output string) eventsPrinter {
	if output == "json" {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		return eventLines{enc}
	}
	return eventText{w}
}

// eventText prints a heading for each commit and a line for each thing that
// happened to some clusters alike.
type eventText struct{ w io.Writer }

func (p eventText) account(a *account, t *trail) error {
	c := a.commit
	fmt.Fprintf(p.w, "%s  %s  %s  %s (%s)\n", short(c.Hash), c.Authored.Format(time.DateOnly), a.verdict, c.Subject, nameOf(c.Author))
	for _, problem := range a.problems {
		fmt.Fprintf(p.w, "    %s\n", problem.Error())
	}
	w := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	if len(a.joined) > 0 {
		fmt.Fprintf(w, "    joined\tCluster\t%s\n", strings.Join(a.joined, " "))
	}
	for rest := a.happened; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(h propagate.Happening) bool { return h.Object != rest[0].Object })
		if n < 0 {
			n = len(rest)
		}
		var object []propagate.Happening
		object, rest = rest[:n], rest[n:]
		for _, same := range alike(object, a.released[object[0].Object]) {
			change := t.change(same, a.released[same[0].Object])
			fmt.Fprintf(w, "    %s\t%s\t%s\t%s\n", change.words(), same[0].Object, change.clusters(), because(planCell{Because: change.Because}))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, same := range actsAlike(a.acts) {
		if err := p.acts(same); err != nil {
			return err
		}
	}
	return nil
}

// actsAlike groups the acts that were the same on several clusters.
func actsAlike(acts []reconcile.Event) [][]reconcile.Event {
	type key struct {
		what   reconcile.What
		object reconcile.EventObject
		text   string
	}
	at := map[key]int{}
	var groups [][]reconcile.Event
	for _, e := range acts {
		k := key{what: e.What, text: e.Text}
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

func (p eventText) act(e reconcile.Event) error { return p.acts([]reconcile.Event{e}) }

// acts prints what was done to one object on some clusters, at the time of the
// first.
func (p eventText) acts(same []reconcile.Event) error {
	first := same[0]
	if first.What == reconcile.Refused || first.What == reconcile.HeldBack {
		return nil // the heading of the commit says it
	}
	words := []string{"    run", first.Time.Format(time.DateTime), string(first.What)}
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
	_, err := fmt.Fprintln(p.w, line)
	return err
}

// eventLine is one event as a line of JSON, which is a contract: fields are
// only added.
type eventLine struct {
	Time time.Time `json:"time"`
	// Source is git for what a commit decided, and run for what a run did.
	Source   string                 `json:"source"`
	Commit   string                 `json:"commit,omitempty"`
	Subject  string                 `json:"subject,omitempty"`
	What     string                 `json:"what"`
	Object   *reconcile.EventObject `json:"object,omitempty"`
	Cluster  string                 `json:"cluster,omitempty"`
	Replicas *planReplicas          `json:"replicas,omitempty"`
	Text     string                 `json:"text,omitempty"`
	Released []string               `json:"released,omitempty"` // the commits that had waited
	Because  []planBecause          `json:"because,omitempty"`
	Problems []eventProblem         `json:"problems,omitempty"`
}

type eventProblem struct {
	Message string `json:"message"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
}

// eventLines prints a line of JSON for each event on each cluster.
type eventLines struct{ *json.Encoder }

func (p eventLines) account(a *account, _ *trail) error {
	c := a.commit
	from := eventLine{Time: c.Authored, Source: "git", Commit: c.Hash}
	head := from
	head.Subject, head.What = c.Subject, a.verdict
	for _, problem := range a.problems {
		head.Problems = append(head.Problems, eventProblem{problem.Message, problem.File, problem.Line})
	}
	lines := []eventLine{head}
	for _, name := range a.joined {
		line := from
		line.What, line.Cluster = "joined", name
		lines = append(lines, line)
	}
	for _, h := range a.happened {
		line := from
		object := reconcile.EventObject(h.Object)
		line.What, line.Object, line.Cluster, line.Text, line.Because = string(h.What), &object, h.Cluster, h.Text, becauseOf(h)
		if h.Replicas != nil {
			line.Replicas = &planReplicas{Before: h.Replicas.Before, After: h.Replicas.After, Asked: h.Replicas.Asked}
		}
		if h.What == propagate.WhatReleased {
			line.Released = a.released[h.Object][h.Cluster]
		}
		lines = append(lines, line)
	}
	for _, line := range lines {
		if err := p.Encode(line); err != nil {
			return err
		}
	}
	for _, e := range a.acts {
		if err := p.act(e); err != nil {
			return err
		}
	}
	return nil
}

func (p eventLines) act(e reconcile.Event) error {
	return p.Encode(eventLine{Time: e.Time, Source: "run", Commit: e.Commit, What: string(e.What), Object: e.Object, Cluster: e.Cluster, Text: e.Text})
}
