// SPDX-License-Identifier: Apache-2.0

package yamledit_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	corev1 "k8s.io/api/core/v1"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/change/yamledit"
)

var update = flag.Bool("update", false, "rewrite what the edits of testdata lead to")

// Each archive has edits, one per line after "> ", a document, and the result:
// the text, or the refusal. An edit of the second document of a file gives its
// line: "> 12 suspend us-1". In the texts ␍ means a carriage return, and ␄ at
// the end a missing last line break.
func TestEdits(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no archives", err)
	}

	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if len(a.Files) == 0 {
				t.Fatal("no document")
			}

			got := outcome(a)
			if *update {
				a.Files = append(a.Files[:1], txtar.File{Name: "want", Data: []byte(got)})
				if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}

			if len(a.Files) != 2 || string(a.Files[1].Data) != got {
				t.Errorf("got\n%s\nwant\n%s", got, a.Files[len(a.Files)-1].Data)
			}
		})
	}
}

func outcome(a *txtar.Archive) string {
	name, text := a.Files[0].Name, bytes.ReplaceAll(a.Files[0].Data, []byte("␍"), []byte("\r"))
	text = bytes.ReplaceAll(text, []byte("␄\n"), nil)
	f, err := yamledit.Read(name, text)
	if err != nil {
		return "refused: " + err.Error() + "\n"
	}

	for line := range strings.Lines(string(a.Comment)) {
		if command, ok := strings.CutPrefix(line, "> "); ok {
			if err := execute(f, strings.Fields(command)); err != nil {
				return "refused: " + err.Error() + "\n"
			}
		}
	}

	got := strings.ReplaceAll(string(f.Text()), "\r", "␍")
	if !strings.HasSuffix(got, "\n") {
		got += "␄\n"
	}

	return got
}

func execute(f *yamledit.File, words []string) error {
	line := 1
	if _, err := fmt.Sscan(words[0], &line); err == nil {
		words = words[1:]
	}

	verb, args := words[0], words[1:]
	kind := "PropagationPolicy"
	if strings.HasSuffix(verb, "taint") {
		kind = "Cluster"
	}

	o, err := f.At(line, kind, "web")
	if err != nil {
		return err
	}

	p, c := yamledit.Policy{Object: o}, yamledit.Cluster{Object: o}
	switch verb {
	case "suspend":
		return p.Suspend(args...)
	case "suspend-all":
		return p.SuspendAll()
	case "resume":
		return p.Resume(args...)
	case "resume-all":
		return p.ResumeAll()
	case "hold-only":
		return p.HoldOnly(args...)
	case "note":
		return p.Note(fleetv1alpha1.Hold{By: "ann <ann@example.com>", Reason: strings.Join(args[2:], " "), Until: args[1]}, strings.Split(args[0], ",")...)
	case "forget":
		return p.Forget(args...)
	case "activate":
		return p.Activate(args[0])
	case "taint":
		return c.Taint(corev1.Taint{Key: args[0], Effect: corev1.TaintEffect(args[1]), Value: strings.Join(args[2:], "")})
	case "untaint":
		return c.Untaint(args[0], corev1.TaintEffect(strings.Join(args[1:], "")))
	case "set":
		return o.Set(args[0], args[1:]...)
	case "remove":
		return o.Remove(args...)
	}

	return fmt.Errorf("unknown edit %q", verb)
}
