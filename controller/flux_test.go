// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	fluxevent "github.com/fluxcd/pkg/apis/event/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/controller"
	"github.com/fairlead/fairlead/testenv/flux"
)

// Beside Flux: the real source-controller fetches a GitRepository, and each of its
// artifacts is a look of the Fleet that names it; the real notification-controller sends
// what the Fleet says to where an Alert of the GitRepository leads.
func TestBesideFlux(t *testing.T) {
	h := newHub(t)
	for _, file := range append(flux.CRDs(t, "source"), flux.CRDs(t, "notification")...) {
		h.installCRD(file)
	}
	h.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "flux-system"}})
	flux.StartSource(t, h.server.Kubeconfig())
	notification := flux.StartNotification(t, h.server.Kubeconfig())
	received := newInbox(t)
	h.alert(received.URL)

	h.run(func(o *controller.Options) { o.EventsAddr = notification.URL })
	h.gitRepository(map[string]any{"branch": "main"})
	h.create(h.fleet("acme", func(f *v1alpha1.Fleet) {
		f.Spec.Interval = &metav1.Duration{Duration: time.Hour}
		f.Spec.Git, f.Spec.SourceRef = nil, &v1alpha1.SourceReference{Kind: "GitRepository", Name: "acme"}
	}))
	h.waitFor("acme", "Ready=True ReconciliationSucceeded: Applied revision: main@sha1:"+h.repo.Head())

	h.release("2.0")
	h.waitFor("acme", "applied main@sha1:"+h.repo.Head())
	if got := h.image("eu-1"); got != "2.0" {
		t.Errorf("eu-1 runs %q", got)
	}
	h.eventually("the alert is sent", func() string {
		for _, e := range received.all() {
			if e.Reason == "Applied" && strings.Contains(e.Metadata["revision"], h.repo.Head()) {
				return ""
			}
		}
		b, _ := json.Marshal(received.all())
		return string(b)
	})
}

// alert has notification-controller send what it is told of the GitRepository.
func (h *hub) alert(address string) {
	h.t.Helper()
	for kind, spec := range map[string]map[string]any{
		"Provider": {"type": "generic", "address": address},
		"Alert": {
			"providerRef":   map[string]any{"name": "acme"},
			"eventSeverity": "info",
			"eventSources":  []any{map[string]any{"kind": "GitRepository", "name": "acme"}},
		},
	} {
		h.must(h.client.Create(context.Background(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": kind,
			"metadata": map[string]any{"name": "acme", "namespace": namespace},
			"spec":     spec,
		}}))
	}
}

// inbox keeps the events that are posted to it.
type inbox struct {
	*httptest.Server

	mu     sync.Mutex
	events []fluxevent.Event
}

func newInbox(t *testing.T) *inbox {
	i := &inbox{}
	i.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var e fluxevent.Event
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			t.Errorf("what was sent is no event: %v", err)
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		i.events = append(i.events, e)
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *inbox) all() []fluxevent.Event {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]fluxevent.Event(nil), i.events...)
}

// Nobody answers at --events-addr: no Fleet waits for it, and neither does the end.
func TestEventsAddressThatHangs(t *testing.T) {
	h := newHub(t)
	asked, release := make(chan struct{}, 100), make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	}))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(release) })
	stop := h.run(func(o *controller.Options) { o.EventsAddr = silent.URL })
	h.create(h.fleet("acme"))
	<-asked

	h.release("2.0")
	h.waitFor("acme", "applied main@sha1:"+h.repo.Head())
	stop() // it fails if something has to be left behind
}
