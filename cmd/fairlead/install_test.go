// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/install"
)

// What is installed runs a command of this program, with flags that it has.
func TestInstalledArguments(t *testing.T) {
	objects, err := install.Manifests(install.Options{EventsAddr: "http://events./"})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetKind() != "StatefulSet" {
			continue
		}
		containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		args, _, _ := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
		cmd, rest, err := newRoot().Find(args)
		if err != nil || cmd.Name() != "controller" {
			t.Fatalf("%v, %v", args, err)
		}
		if err := cmd.ParseFlags(rest); err != nil {
			t.Error(err)
		}
		return
	}
	t.Error("there is no StatefulSet")
}
