// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"github.com/fairlead/fairlead/fleet"
)

// The lines of a document take a second parse of it: nobody asks for those of a template
// that there is nothing to say of.
func TestLinesAreReadOnlyForFindings(t *testing.T) {
	for text, want := range map[string]int{
		"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {b: c}\n":                            0,
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n":                                       0,
		"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {b: 'ENC[x]'}\nsops: {version: v}\n": 1,
	} {
		docs, wrong := parseFile("a.yaml", []byte(text))
		if len(docs) != 1 || wrong != nil {
			t.Fatalf("%s: %v", text, wrong)
		}
		asked := 0
		lines := docs[0].lines
		docs[0].lines = func() map[string]int { asked++; return lines() }
		if _, wrong := classify(docs[0], "a.yaml", fleet.Kinds{}); wrong != nil {
			t.Fatalf("%s: %v", text, wrong)
		}
		if asked != want {
			t.Errorf("the lines were asked for %d times, want %d: %s", asked, want, text)
		}
	}
}
