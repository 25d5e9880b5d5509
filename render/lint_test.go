// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/render"
)

// T23: sizes that every API server rejects.
func TestT23Sizes(t *testing.T) {
	text := func(n int) string { return strings.Repeat("x", n) }
	secret := func(n int) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {k: " + base64.StdEncoding.EncodeToString([]byte(text(n))) + "}\n"
	}

	thing := func(n int) string {
		return "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: t, namespace: default}\nspec: {text: " + text(n) + "}\n"
	}

	annotated := func(n int) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n  annotations:\n    a: %s\n", text(n))
	}
	for name, c := range map[string]struct{ file, want string }{
		"annotations that fit":  {annotated(256<<10 - 1), ""},
		"annotations":           {annotated(256 << 10), "a.yaml:5: no cluster accepts ConfigMap default/c: metadata.annotations is 262145 bytes, the limit is 262144"},
		"a Secret that fits":    {secret(1 << 20), ""},
		"a Secret":              {secret(1<<20 + 1), "a.yaml:4: no cluster accepts Secret default/s: data is 1048577 bytes, the limit is 1048576"},
		"an object that fits":   {thing(1_500_000), ""},
		"an object for some":    {thing(1_600_000), "a.yaml:1: Thing default/t is 1600111 bytes; a cluster accepts at most 1572864 unless its etcd limit is raised"},
		"an object for nobody":  {thing(3_200_000), "a.yaml:1: no cluster accepts Thing default/t: the object is 3200111 bytes, the limit is 3145728"},
		"a ConfigMap of values": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\nbinaryData: {k: " + text(1<<20) + "}\n", ""},
	} {
		b, err := render.New().Render(file("a.yaml", c.file))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}

		got := ""
		for f := range b.Snapshot.Findings.Values() {
			got += f.String()
		}

		if got != c.want {
			t.Errorf("%s: it reads %q, want %q", name, got, c.want)
		}
	}
}

// Invalid replicas are placed as none, and no cluster accepts them.
func TestInvalidReplicas(t *testing.T) {
	for replicas, want := range map[string]string{
		"12": "", "0": "", "2147483647": "", "null": "", "3.0": "",
		"twelve":     "a string, must be a whole number",
		`"12"`:       "a string, must be a whole number",
		"-3":         "-3, must be from 0 to 2147483647",
		"2147483648": "2147483648, must be from 0 to 2147483647",
		"2.5":        "not a whole number",
		"1e30":       "not a whole number",
		"[3]":        "not a whole number",
		"true":       "not a whole number",
	} {
		b, err := render.New().Render(file("a.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: "+replicas+"\n"))
		if err != nil {
			t.Errorf("%s: %v", replicas, err)
			continue
		}

		got := ""
		for f := range b.Snapshot.Findings.Values() {
			got += f.String()
		}

		if want != "" {
			want = "a.yaml:5: no cluster accepts Deployment default/web: spec.replicas is " + want
		}
		if got != want {
			t.Errorf("%s: it reads %q, want %q", replicas, got, want)
		}
	}
}
