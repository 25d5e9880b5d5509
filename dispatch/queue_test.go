// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// idOf reads "Deployment shop/web", or "Namespace shop".
func idOf(text string) object.ID {
	kind, name, _ := strings.Cut(text, " ")
	id := object.ID{Kind: kind, Name: name}
	if namespace, name, ok := strings.Cut(name, "/"); ok {
		id.Namespace, id.Name = namespace, name
	}
	switch kind {
	case "CustomResourceDefinition":
		id.Group = "apiextensions.k8s.io"
	case "ValidatingWebhookConfiguration":
		id.Group = "admissionregistration.k8s.io"
	}
	return id
}

const (
	shop     = "Namespace shop"
	settings = "ConfigMap shop/settings"
	web      = "Deployment shop/web"
	hooks    = "ValidatingWebhookConfiguration hooks"
)

// put is what queue.put is told, in words.
func put(q *queue, v Verb, objects ...string) {
	for _, o := range objects {
		q.put(idOf(o), v)
	}
}

// take starts the next job, which must be the object's; "" is none.
func take(t *testing.T, q *queue, want string) *job {
	t.Helper()
	j := q.next()
	got := ""
	if j != nil {
		got = nameOf(j)
		q.start(j, 0)
	}
	if got != want {
		t.Fatalf("next is %q, want %q", got, want)
	}
	return j
}

func nameOf(j *job) string {
	if j.id.Namespace == "" {
		return j.id.Kind + " " + j.id.Name
	}
	return j.id.Kind + " " + j.id.Namespace + "/" + j.id.Name
}

// drain acknowledges one job after the other, and returns their order.
func drain(q *queue) (order []string) {
	for j := q.next(); j != nil; j = q.next() {
		q.start(j, 0)
		q.end(j)
		q.drop(j.id)
		order = append(order, nameOf(j))
	}
	return order
}

func TestQueueOrder(t *testing.T) {
	for _, test := range []struct {
		name string
		puts func(q *queue)
		want []string
	}{
		{
			"what others need comes first, and what may refuse others last",
			func(q *queue) { put(q, Apply, hooks, web, shop) },
			[]string{shop, web, hooks},
		},
		{
			"on the way out it is the other way round",
			func(q *queue) { put(q, Delete, shop, web, hooks) },
			[]string{hooks, web, shop},
		},
		{
			"all that is applied comes before anything is deleted",
			func(q *queue) {
				put(q, Delete, "ConfigMap shop/old")
				put(q, Orphan, "ConfigMap shop/older")
				put(q, Apply, hooks)
			},
			[]string{hooks, "ConfigMap shop/old", "ConfigMap shop/older"},
		},
		{
			"what is referred to comes before what refers to it",
			func(q *queue) { put(q, Apply, "Ingress shop/web", web, "Service shop/web", settings) },
			[]string{settings, "Service shop/web", web, "Ingress shop/web"},
		},
		{
			"and goes after it",
			func(q *queue) { put(q, Delete, settings, "Service shop/web", web, "Ingress shop/web") },
			[]string{"Ingress shop/web", web, "Service shop/web", settings},
		},
		{
			"equals are in the order of namespace, kind and name",
			func(q *queue) {
				put(q, Apply, "Secret shop/a", "ConfigMap shop/b", "ConfigMap shop/a", "Secret bar/z")
			},
			[]string{"Secret bar/z", "ConfigMap shop/a", "ConfigMap shop/b", "Secret shop/a"},
		},
		{
			"an object is done once, however often it was put",
			func(q *queue) { put(q, Apply, web, web, web) },
			[]string{web},
		},
		{
			"what was dropped is not done",
			func(q *queue) { put(q, Apply, web, settings); q.drop(idOf(settings)) },
			[]string{web},
		},
		{
			"an object whose turn had not come when it was given up has the turn of what goes",
			func(q *queue) { put(q, Apply, hooks, web, shop); put(q, Delete, shop, web, hooks) },
			[]string{hooks, web, shop},
		},
		{
			"and the other way round",
			func(q *queue) { put(q, Delete, shop, web); put(q, Apply, web, shop) },
			[]string{shop, web},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := newQueue()
			test.puts(&q)
			if got := drain(&q); !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
			if q.open != 0 {
				t.Errorf("%d jobs are open at the end", q.open)
			}
		})
	}
}

// Every first attempt of a stage ends before the next stage begins.
func TestQueueStages(t *testing.T) {
	q := newQueue()
	put(&q, Apply, shop, "Namespace bar", web)
	first := take(t, &q, "Namespace bar")
	second := take(t, &q, shop)
	take(t, &q, "")

	q.end(first)
	q.drop(first.id)
	take(t, &q, "") // the other one is not answered yet

	q.end(second)
	q.fail(second, failure(member.Invalid), noon, steady)
	take(t, &q, web)
}

// A job that is tried again holds nobody up, though its stage is a lower one.
func TestQueueSecondAttemptHoldsNobodyUp(t *testing.T) {
	q := newQueue()
	put(&q, Apply, shop, web)
	j := take(t, &q, shop)
	q.end(j)
	q.fail(j, failure(member.Unavailable), noon, steady)

	q.due(noon.Add(time.Second))
	take(t, &q, shop) // it still goes first
	take(t, &q, web)  // beside it
	q.end(j)
	if q.running[applyFirst] != 0 {
		t.Errorf("%d first attempts are in flight in the first stage", q.running[applyFirst])
	}
}

// What was not the object's failure is its first attempt again.
func TestQueueRetry(t *testing.T) {
	q := newQueue()
	put(&q, Apply, shop, web)
	j := take(t, &q, shop)
	if !q.end(j) {
		t.Fatal("the job does not count any more")
	}

	q.retry(j)
	if !q.hasReady() || j.waits || j.failures != 0 || q.open != 2 {
		t.Errorf("ready %v, waits %v, %d failures, %d open", q.hasReady(), j.waits, j.failures, q.open)
	}
	take(t, &q, shop)
	take(t, &q, "")
}

// What becomes of a job that fails, by why it failed.
func TestQueueFail(t *testing.T) {
	type seen struct {
		Final bool          // waiting does not mend it
		Wait  time.Duration // until it is tried again; -1 is not without another Sync
		Open  int
	}
	asked := func(wait time.Duration) *member.Error {
		return &member.Error{Reason: member.Unavailable, RetryAfter: wait}
	}

	for _, test := range []struct {
		name     string
		err      *member.Error
		failures int
		want     seen
	}{
		{"it is tried again after a pause", failure(member.Unavailable), 1, seen{Wait: time.Second, Open: 1}},
		{"and after a longer one", failure(member.Conflict), 3, seen{Wait: 4 * time.Second, Open: 1}},
		{"later if the member asks for it", asked(time.Minute), 1, seen{Wait: time.Minute, Open: 1}},
		{"not sooner", asked(time.Millisecond), 2, seen{Wait: 2 * time.Second, Open: 1}},
		{"a kind that is not served may be one day", failure(member.NotServed), 1, seen{Wait: time.Second, Open: 1}},
		{"somebody else's object waits for another Sync", failure(member.Foreign), 1, seen{Final: true, Wait: -1}},
		{"so does what the member refuses", failure(member.Invalid), 1, seen{Final: true, Wait: -1}},
		{"and what there is no manifest for", failure(member.Unrendered), 4, seen{Final: true, Wait: -1}},
		{"somebody may grant it, so it is tried after the longest pause", failure(member.Forbidden), 1, seen{Final: true, Wait: 30 * time.Second}},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := newQueue()
			put(&q, Apply, web)
			var j *job
			now := noon
			for range test.failures {
				if j != nil && !j.at.IsZero() {
					now = j.at
					q.due(now)
				} else if j != nil {
					put(&q, Apply, web)
				}
				j = take(t, &q, web)
				q.end(j)
				q.fail(j, test.err, now, steady)
			}

			got := seen{Final: j.final, Wait: -1, Open: q.open}
			if !j.at.IsZero() {
				got.Wait = j.at.Sub(now)
			}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if !j.waits || j.err != test.err || q.next() != nil {
				t.Errorf("it waits: %v, its error is %v", j.waits, j.err)
			}
		})
	}
}

// A job that was refused waits for no time, but what is put is done, as if for the
// first time.
func TestQueuePutAgain(t *testing.T) {
	q := newQueue()
	put(&q, Apply, web)
	j := take(t, &q, web)
	q.end(j)
	q.fail(j, failure(member.Invalid), noon, steady)
	if at := q.due(noon.Add(24 * time.Hour)); !at.IsZero() || q.hasReady() {
		t.Fatalf("it is due at %s", at)
	}

	put(&q, Delete, web)
	if q.open != 1 || j.err != nil || j.failures != 0 || j.final || j.stage != deleteRest {
		t.Errorf("%d open, error %v, %d failures, final %v, stage %d", q.open, j.err, j.failures, j.final, j.stage)
	}
	take(t, &q, web)
}

// Forbidden is final, so nobody waits for it, and tried again all the same.
func TestQueueForbiddenIsTriedAgain(t *testing.T) {
	q := newQueue()
	put(&q, Apply, web)
	j := take(t, &q, web)
	q.end(j)
	q.fail(j, failure(member.Forbidden), noon, steady)
	if at := q.due(noon); !at.Equal(noon.Add(steady.Max)) || q.open != 0 {
		t.Fatalf("it is due at %s, and %d are open", at, q.open)
	}

	q.due(noon.Add(steady.Max))
	if take(t, &q, web); q.open != 0 {
		t.Error("somebody waits for it")
	}
}

// due makes what is due ready, and says when the next one is.
func TestQueueDue(t *testing.T) {
	q := newQueue()
	for i, o := range []string{"Service shop/web", web, settings} {
		put(&q, Apply, o)
		j := take(t, &q, o)
		q.end(j)
		q.fail(j, failure(member.Unavailable), noon.Add(time.Duration(2-i)*time.Minute), steady)
	}
	put(&q, Apply, shop)
	refused := take(t, &q, shop)
	q.end(refused)
	q.fail(refused, failure(member.Invalid), noon, steady) // waits for no time

	for _, step := range []struct {
		at   time.Duration
		next time.Duration // -1: none is waited for
		take []string
	}{
		{0, time.Second, nil},
		{time.Second - 1, time.Second, nil},
		{time.Second, time.Minute + time.Second, []string{settings}},
		{time.Hour, -1, []string{"Service shop/web", web}},
		{2 * time.Hour, -1, nil},
	} {
		next := time.Duration(-1)
		if at := q.due(noon.Add(step.at)); !at.IsZero() {
			next = at.Sub(noon)
		}
		if got := drain(&q); next != step.next || !slices.Equal(got, step.take) {
			t.Errorf("after %s: %q, and the next in %s; want %q and %s", step.at, got, next, step.take, step.next)
		}
	}
}

// A job that is put is not due when its time comes as well.
func TestQueuePutBeforeItIsDue(t *testing.T) {
	q := newQueue()
	put(&q, Apply, web)
	j := take(t, &q, web)
	q.end(j)
	q.fail(j, failure(member.Unavailable), noon, steady)

	put(&q, Apply, web, web)
	take(t, &q, web)
	if q.due(noon.Add(time.Hour)); q.hasReady() {
		t.Error("it is ready while it is tried")
	}
}

// A job that is to be tried again twice is tried once at a time, and not while it
// waits.
func TestQueueRetryTwice(t *testing.T) {
	q := newQueue()
	put(&q, Apply, web)
	j := take(t, &q, web)
	q.end(j)
	for range 3 {
		q.retry(j)
	}
	take(t, &q, web)

	q.retry(j)
	take(t, &q, "")
	q.retry(j)
	q.end(j)
	q.fail(j, failure(member.Unavailable), noon, steady)
	take(t, &q, "")
}

// What was dropped while it was under way does not count when it ends.
func TestQueueDropped(t *testing.T) {
	q := newQueue()
	put(&q, Apply, shop, web)
	j := take(t, &q, shop)
	q.drop(j.id)
	take(t, &q, "") // its request is still under way

	if q.end(j) {
		t.Error("it counts")
	}
	take(t, &q, web)
}

// What was given up is a failure on record, which another put ends.
func TestQueueGiveUp(t *testing.T) {
	q := newQueue()
	put(&q, Apply, web, settings)
	why := failure(member.Contested)
	q.giveUp(idOf(web), why)
	if j := q.jobs[idOf(web)]; j == nil || j.err != why || !j.final || !j.waits || q.open != 1 {
		t.Errorf("the job is %+v, and %d are open", j, q.open)
	}
	if q.due(noon.Add(24 * time.Hour)); !slices.Equal(drain(&q), []string{settings}) {
		t.Error("it was done all the same")
	}

	put(&q, Apply, web)
	if q.open != 1 || !slices.Equal(drain(&q), []string{web}) {
		t.Error("it was not done")
	}
}

// After clear there is nothing to do, but what is under way still is.
func TestQueueClear(t *testing.T) {
	q := newQueue()
	put(&q, Apply, shop, web)
	j := take(t, &q, shop)
	q.clear()
	if q.open != 0 || q.hasReady() || len(q.jobs) != 0 {
		t.Errorf("%d open, ready %v, %d jobs", q.open, q.hasReady(), len(q.jobs))
	}

	put(&q, Apply, web)
	take(t, &q, "")
	if q.end(j) {
		t.Error("what was cleared counts")
	}
	take(t, &q, web)
}
