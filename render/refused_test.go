// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/render"
)

// T23: sizes that no API server takes.
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
		"annotations":           {annotated(256 << 10), "a.yaml:5: no cluster takes ConfigMap default/c: its annotations take 262145 bytes, and may take 262144"},
		"a Secret that fits":    {secret(1 << 20), ""},
		"a Secret":              {secret(1<<20 + 1), "a.yaml:4: no cluster takes Secret default/s: its data are 1048577 bytes, and may be 1048576"},
		"an object that fits":   {thing(1_500_000), ""},
		"an object for some":    {thing(1_600_000), "a.yaml:1: Thing default/t is 1600111 bytes: a cluster takes 1572864, unless its etcd is told to take more"},
		"an object for nobody":  {thing(3_200_000), "a.yaml:1: no cluster takes Thing default/t: it is 3200111 bytes, and may be 3145728"},
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

// What is no number of replicas is placed as none, and no cluster takes it.
func TestReplicasThatAreNone(t *testing.T) {
	for replicas, want := range map[string]string{
		"12": "", "0": "", "2147483647": "", "null": "", "3.0": "",
		"twelve":     "a string, and must be a whole number",
		`"12"`:       "a string, and must be a whole number",
		"-3":         "-3, and must be from 0 to 2147483647",
		"2147483648": "2147483648, and must be from 0 to 2147483647",
		"2.5":        "no whole number",
		"1e30":       "no whole number",
		"[3]":        "no whole number",
		"true":       "no whole number",
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
			want = "a.yaml:5: no cluster takes Deployment default/web: spec.replicas is " + want
		}
		if got != want {
			t.Errorf("%s: it reads %q, want %q", replicas, got, want)
		}
	}
}
