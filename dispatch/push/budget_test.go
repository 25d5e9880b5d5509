// SPDX-License-Identifier: Apache-2.0

package push

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch/member"
)

var configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// repeated writes an answer that is mostly the same.
func repeated(w io.Writer, before, what string, n int, after string) {
	_, _ = io.WriteString(w, before)
	chunk := strings.Repeat(what+",", 1000)
	for range n / 1000 {
		_, _ = io.WriteString(w, chunk)
	}
	_, _ = io.WriteString(w, what+after)
}

// zipped is a member that answers everything with one text, which is small on the
// wire.
func zipped(t *testing.T, write func(io.Writer)) *rest.Config {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		write(z)
	}))
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL}
}

// A7: what bounds an answer is what it decodes to, not only its text: each of these
// is a few KiB on the wire and took gigabytes.
func TestAnswersThatDecodeToTooMuch(t *testing.T) {
	const list = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},`
	const one = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"default","uid":"u","resourceVersion":"1",`
	hostile := map[string]func(io.Writer){
		"items":         func(w io.Writer) { repeated(w, list+`"items":[`, `{}`, 2_000_000, `]}`) },
		"managedFields": func(w io.Writer) { repeated(w, one+`"managedFields":[`, `{}`, 2_000_000, `]}}`) },
		"labels": func(w io.Writer) {
			repeated(w, one+`"labels":{`, `"a":""`, 5_000_000, `}}}`)
		},
		"causes": func(w io.Writer) {
			repeated(w, `{"kind":"Status","details":{"causes":[`, `{}`, 2_000_000, `]}}`)
		},
		"resources": func(w io.Writer) {
			repeated(w, `{"kind":"APIResourceList","resources":[`, `{}`, 2_000_000, `]}`)
		},
	}
	first := func(all func(func(member.Found, error) bool)) error {
		for _, err := range all {
			return err
		}
		return nil
	}
	ref := member.Ref{GroupVersionKind: configMapKind, Namespace: "default", Name: "a"}
	crontab := member.Ref{GroupVersionKind: schema.GroupVersionKind{Group: "stable.example.com", Version: "v1", Kind: "CronTab"}, Namespace: "default", Name: "a"}
	asked := map[string]func(context.Context, *apiMember) error{
		"list":  func(ctx context.Context, m *apiMember) error { return first(m.List(ctx, configMapKind, "")) },
		"ours":  func(ctx context.Context, m *apiMember) error { return first((&Reader{m}).Ours(ctx, configMapKind)) },
		"get":   func(ctx context.Context, m *apiMember) error { _, err := m.Get(ctx, ref); return err },
		"read":  func(ctx context.Context, m *apiMember) error { _, err := m.Read(ctx, ref); return err },
		"kinds": func(ctx context.Context, m *apiMember) error { _, err := m.Get(ctx, crontab); return err },
		"delete": func(ctx context.Context, m *apiMember) error {
			return m.Delete(ctx, ref, "u", member.ApplyOptions{}.Marker)
		},
		"relist": func(ctx context.Context, m *apiMember) error {
			return m.Relist(ctx, configMapKind, func(member.WatchEvent) {})
		},
		"watch": func(ctx context.Context, m *apiMember) error {
			return m.Watch(ctx, configMapKind, time.Minute, func(member.WatchEvent) {})
		},
		"table": func(ctx context.Context, m *apiMember) error {
			_, err := (&Reader{m}).Table(ctx, Resource{GroupVersionKind: configMapKind, Plural: "configmaps", Namespaced: true}, Selection{})
			return err
		},
	}
	for what, write := range hostile {
		cfg := zipped(t, write)
		for how, ask := range asked {
			if what != "items" && (how == "ours" || how == "relist" || how == "table") {
				continue // they read as list does
			}
			t.Run(what+" "+how, func(t *testing.T) {
				m, err := newPush(cfg, Options{})
				if err != nil {
					t.Fatal(err)
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				err = ask(t.Context(), m)
				runtime.ReadMemStats(&after)
				if !errors.Is(err, member.Unreachable) {
					t.Errorf("error %v, want one that says nothing about the object", err)
				}
				if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 1500 { // of which a third is one text, asked for three times
					t.Errorf("%d MiB were allocated", took)
				}
			})
		}
	}
}

// A7: a list may be longer than one answer, not longer than a cluster.
func TestListThatIsTooLong(t *testing.T) {
	page := `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"1","continue":"more"},"items":[` + strings.Repeat(`{},`, 99_999) + `{}]}`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page) }))
	defer s.Close()
	r, err := NewReader(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	lists := map[string]func() error{
		"list": func() error {
			for _, err := range r.List(t.Context(), configMapKind, "") {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"ours": func() error {
			for _, err := range r.Ours(t.Context(), configMapKind) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"relist": func() error { return r.push.Relist(t.Context(), configMapKind, func(member.WatchEvent) {}) },
	}
	for name, read := range lists {
		if err := read(); !errors.Is(err, member.Unreachable) || !strings.Contains(fmt.Sprint(err), "a list of ConfigMap has more than 1000000 objects") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A page that is too much is asked for again with fewer objects, down to one, and
// then with more again.
func TestShorterPages(t *testing.T) {
	var sizes []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		size, from := req.URL.Query().Get("limit"), req.URL.Query().Get("continue")
		sizes = append(sizes, size)
		at, _ := strconv.Atoi(from)
		n, _ := strconv.Atoi(size)
		next := strconv.Itoa(at + n)
		if at+n >= 30 {
			next = ""
		}
		fat := "{}"
		if at == 0 {
			fat = strings.Repeat("[", 10_000) // for each object of the first page
		}
		_, _ = fmt.Fprintf(w, `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"1","continue":%q},"items":[`, next)
		for i := range min(n, 30-at) {
			if i > 0 {
				_, _ = io.WriteString(w, ",")
			}
			if at == 0 {
				_, _ = fmt.Fprintf(w, `{"metadata":{"name":"o%d","uid":"u"},"x":[%s]}`, at+i, strings.TrimSuffix(strings.Repeat("[],", len(fat)*3), ","))
				continue
			}
			_, _ = fmt.Fprintf(w, `{"metadata":{"name":"o%d","uid":"u"}}`, at+i)
		}
		_, _ = io.WriteString(w, `]}`)
	}))
	defer s.Close()
	r, err := NewReader(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for f, err := range r.List(t.Context(), configMapKind, "") {
		if err != nil {
			t.Fatal(err)
		}
		got[f.ID.Name] = true
	}
	if len(got) != 30 {
		t.Errorf("%d objects, want 30", len(got))
	}
	if want := "500 20 1 20 20"; strings.Join(sizes, " ") != want {
		t.Errorf("pages of %v, want %s", sizes, want)
	}
}

// A7: of the large answers of one member one is at hand at a time.
func TestLargeAnswersTakeTurns(t *testing.T) {
	large := newOneLarge()
	done, err := large.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := large.take(over); !errors.Is(err, context.Canceled) {
		t.Errorf("a second one was taken: %v", err)
	}
	done()
	done()
	again, err := large.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again()
}

// What is counted are values, not the text of strings.
func TestWeigh(t *testing.T) {
	long := strings.Repeat(`{[,\"`, 500_000)
	if n, err := weigh([]byte(`{"a":"` + long + `","b":[]}`)); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := weigh([]byte(`[` + strings.Repeat(`1,`, maxValues+1) + `1]`)); !errors.Is(err, errTooMany) {
		t.Error(err)
	}
	var head listHead
	if err := head.Items.UnmarshalJSON([]byte(`[{"a":[{}]},{"b":"]["}]`)); err != nil || head.Items != 2 {
		t.Errorf("%d items, %v", head.Items, err)
	}
}
