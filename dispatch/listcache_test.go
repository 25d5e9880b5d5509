// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// What a member is asked before objects are created, one after the other.
func TestFind(t *testing.T) {
	type step struct {
		object string
		uid    string // "" is an empty place
		asked  []string
		err    error
		then   func(w *worker, m *scripted) // before the next one
	}
	const other, third = "ConfigMap shop/other", "ConfigMap shop/third"
	refused := failure(member.Unavailable)
	mends := func(_ *worker, m *scripted) { m.fail = nil }

	for _, test := range []struct {
		name  string
		queue []string
		fail  map[string]error
		steps []step
	}{
		{
			name: "one object of its kind is a get", queue: []string{settings},
			steps: []step{{object: settings, uid: "1", asked: []string{"get ConfigMap"}}},
		},
		{
			name: "several are one list", queue: []string{settings, other, third},
			steps: []step{
				{object: settings, uid: "1", asked: []string{"list ConfigMap"}},
				{object: other},
				{object: third, uid: "3"},
			},
		},
		{
			name: "each kind and namespace is a place", queue: []string{settings, other, "ConfigMap bar/a", "Secret shop/a"},
			steps: []step{
				{object: settings, uid: "1", asked: []string{"list ConfigMap"}},
				{object: "ConfigMap bar/a", asked: []string{"get ConfigMap"}},
				{object: "Secret shop/a", asked: []string{"get Secret"}},
			},
		},
		{
			name: "a second attempt relies on no list", queue: []string{settings, other},
			steps: []step{
				{object: settings, uid: "1", asked: []string{"list ConfigMap"}, then: func(w *worker, _ *scripted) {
					w.queue.jobs[idOf(settings)].failures = 1
				}},
				{object: settings, uid: "1", asked: []string{"get ConfigMap"}},
			},
		},
		{
			name: "nor does what has no job", queue: []string{other},
			steps: []step{{object: settings, uid: "1", asked: []string{"get ConfigMap"}}},
		},
		{
			name: "a list that failed is read again", queue: []string{settings, other},
			fail: map[string]error{"list ConfigMap": refused},
			steps: []step{
				{object: settings, asked: []string{"list ConfigMap"}, err: refused, then: mends},
				{object: settings, uid: "1", asked: []string{"list ConfigMap"}},
				{object: other},
			},
		},
		{
			name: "so is a get", queue: []string{settings},
			fail: map[string]error{"get ConfigMap": refused},
			steps: []step{
				{object: settings, asked: []string{"get ConfigMap"}, err: refused, then: mends},
				{object: settings, uid: "1", asked: []string{"get ConfigMap"}},
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := &scripted{found: []member.Found{found(settings, "1"), found(third, "3")}, fail: test.fail}
			w := idleWorker(t, m, &disk{})
			w.fleet = desires{}
			for _, o := range test.queue {
				w.fleet.(desires)[idOf(o)] = Desire{Want: Want{Verb: Apply}}
				put(&w.queue, Apply, o)
			}

			for i, s := range test.steps {
				got, err := w.find(m, member.RefTo(idOf(s.object), "v1"))
				uid := types.UID("")
				if got != nil {
					uid = got.UID
				}
				if uid != types.UID(s.uid) || !errors.Is(err, s.err) {
					t.Errorf("%d: %s has the UID %q, error %v; want %q, %v", i+1, s.object, uid, err, s.uid, s.err)
				}
				if asked := m.take(); !slices.Equal(asked, s.asked) {
					t.Errorf("%d: asked %q, want %q", i+1, asked, s.asked)
				}
				if s.then != nil {
					s.then(w, m)
				}
			}
		})
	}
}

// A list that somebody has read again meanwhile is not forgotten.
func TestListCacheForgetsWhatFailed(t *testing.T) {
	c := &listCache{}
	p := place{namespace: "shop"}
	failed := c.at(p)
	c.forget(p, failed)
	again := c.at(p)
	if again == failed {
		t.Fatal("it is the list that failed")
	}

	c.forget(p, failed)
	if c.at(p) != again {
		t.Error("the list that was read again is forgotten")
	}
}

// A list remembers what is wanted alone, and of it what is asked for.
func TestListTrims(t *testing.T) {
	digest := object.DigestOf([]byte("a"))
	ours := member.Found{
		ID: idOf(settings), UID: "1", ResourceVersion: "7", Deleting: true,
		Labels:      map[string]string{object.LabelManaged: "true", object.LabelFleet: "sea", "app": "web"},
		Annotations: map[string]string{object.AnnotationDigest: digest.String(), object.AnnotationRevision: "c1", "note": "long"},
	}
	theirs := found("ConfigMap shop/theirs", "2")
	theirs.Labels = map[string]string{"app": "web"}
	theirs.Annotations = map[string]string{object.AnnotationDigest: digest.String()}
	former := ours
	former.ID.Name, former.Labels = "former", map[string]string{object.LabelManaged: "true", object.LabelFleet: "ocean"}
	m := &scripted{found: []member.Found{ours, theirs, former, found("ConfigMap shop/unwanted", "3")}}
	w := idleWorker(t, m, &disk{})

	p := place{member.RefTo(ours.ID, "v1").GroupVersionKind, "shop"}
	got, err := w.list(m, desires{}, p, func(id object.ID) bool { return id.Name != "unwanted" })
	if err != nil || len(got) != 3 {
		t.Fatalf("got %v, %v", got, err)
	}
	if f := got[ours.ID]; f.UID != "1" || !f.Deleting || !f.Ours(sea) || f.Digest() != digest || len(f.Labels) != 2 || len(f.Annotations) != 1 {
		t.Errorf("of ours it remembers %+v", f)
	}
	if f := got[former.ID]; f.Ours(sea) || !f.Ours(object.Marker{Name: "sea", Former: []string{"ocean"}, Has: func(commit string) bool { return commit == "c1" }}) {
		t.Errorf("of what bears another name it remembers %+v", f)
	}
	if f := got[theirs.ID]; f.UID != "2" || f.Deleting || f.Labels != nil || f.Annotations != nil {
		t.Errorf("of what is not ours it remembers %+v", f)
	}
}
