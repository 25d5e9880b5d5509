// SPDX-License-Identifier: Apache-2.0

package push_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
)

// A server from before discovery was aggregated lists its groups and versions
// one by one.
func TestFindWithoutAggregation(t *testing.T) {
	s := start(t, "eu-1")
	old := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Accept", "application/json")
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(old.Close)
	r, err := push.NewReader(&rest.Config{Host: old.URL})
	if err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]string{"cm": "configmaps", "deploy.apps": "deployments.apps", "Ingress": "ingresses.networking.k8s.io"} {
		if res, err := r.Find(t.Context(), word); err != nil || res.String() != want {
			t.Errorf("%s is %s, %v; want %s", word, res, err, want)
		}
	}
	if _, err := r.Find(t.Context(), "ships"); !errors.Is(err, member.NotServed) {
		t.Errorf("ships: %v", err)
	}
}

// A list that is longer than a page is read to its end.
func TestTableOfManyPages(t *testing.T) {
	s := start(t, "eu-1")
	const n = 501
	for i := range n {
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%d","labels":{"fairlead.dev/managed":"true"}}}`, i)
		resp, err := http.Post(s.URL()+"/api/v1/namespaces/default/configmaps", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	r, err := push.NewReader(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	maps, err := r.Find(t.Context(), "cm")
	if err != nil {
		t.Fatal(err)
	}
	if table, err := r.Table(t.Context(), maps, push.Selection{}); err != nil || len(table.Rows) != n {
		t.Errorf("%d rows, %v", len(table.Rows), err)
	}
	whole, ours := 0, 0
	for _, err := range r.Objects(t.Context(), maps, push.Selection{}) {
		if err != nil {
			t.Fatal(err)
		}
		whole++
	}
	for _, err := range r.Ours(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}) {
		if err != nil {
			t.Fatal(err)
		}
		ours++
	}
	if whole != n || ours != n {
		t.Errorf("%d objects, %d of ours", whole, ours)
	}
}

// The time that was given is named, whatever ended the request.
func TestNoAnswerInTime(t *testing.T) {
	s := start(t, "eu-1")
	s.SetLatency(time.Minute)
	r, err := push.NewReader(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := push.Within(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = r.Find(ctx, "cm")
	if !errors.Is(err, member.Unreachable) || !strings.Contains(err.Error(), "no answer within 50ms") {
		t.Errorf("it reads %v", err)
	}
}

func TestGather(t *testing.T) {
	table := func(columns string, cells ...any) *metav1.Table {
		out := &metav1.Table{}
		for name := range strings.FieldsSeq(columns) {
			out.ColumnDefinitions = append(out.ColumnDefinitions, metav1.TableColumnDefinition{Name: name})
		}
		out.Rows = []metav1.TableRow{{Cells: cells, Object: runtime.RawExtension{Object: &metav1.PartialObjectMetadata{}}}}
		return out
	}
	columns, rows := push.Gather([]string{"ap-1", "eu-1", "us-1"}, map[string]*metav1.Table{
		"eu-1": table("Name Ready Age", "web", "1/1", "3d"),
		"us-1": table("Name Status Ready Age Class", "web", "Up", "2/2", "4d", "gold"),
	})
	var names []string
	for _, c := range columns {
		names = append(names, c.Name)
	}
	if want := []string{"Name", "Status", "Ready", "Age", "Class"}; !reflect.DeepEqual(names, want) {
		t.Errorf("columns %v, want %v", names, want)
	}
	want := [][]any{{"eu-1", "web", nil, "1/1", "3d", nil}, {"us-1", "web", "Up", "2/2", "4d", "gold"}}
	for i, r := range rows {
		if got := append([]any{r.Cluster}, r.Cells...); !reflect.DeepEqual(got, want[i]) {
			t.Errorf("row %v, want %v", got, want[i])
		}
	}
}
