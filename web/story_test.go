// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/net/html"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
	"github.com/fairlead/fairlead/web"
)

var update = flag.Bool("update", false, "write what the stories want")

// now is a week after the commits of sourcetest.
var now = time.Date(2026, 1, 8, 12, 0, 0, 0, time.UTC)

// A story is a history and requests, each with the text of its answer. Its lines are
//
//	commit NAME message   the files below NAME/ are committed
//	branch NAME           a branch is made there, and checked out; main goes back
//	get PATH              the status and the text of a page; with raw the body as it is
//
// and "want" has what they gave.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d stories: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { tellStory(t, file) })
	}
}

func tellStory(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}

	g := sourcetest.New(t)
	var got strings.Builder
	var s *site
	for line := range strings.Lines(string(archive.Comment)) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case "", "#":
		case "commit":
			name, message, _ := strings.Cut(rest, " ")
			g.Commit(strings.ReplaceAll(message, `\n`, "\n"), filesBelow(archive, name))
		case "branch":
			g.Git("checkout", "-q", "-B", rest)
		case "main":
			g.Git("checkout", "-q", "main")
		case "get", "raw":
			if s == nil {
				s = open(t, g.Dir)
			}
			s.follow(g)
			fmt.Fprintf(&got, "%s", s.tell(verb, rest))
		default:
			t.Fatalf("%s: unknown line %q", file, line)
		}
	}

	i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "want" })
	if *update {
		if i < 0 {
			i, archive.Files = len(archive.Files), append(archive.Files, txtar.File{Name: "want"})
		}
		archive.Files[i].Data = []byte(got.String())
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if i < 0 || string(archive.Files[i].Data) != got.String() {
		t.Errorf("%s: got\n%s", file, got.String())
	}
}

// filesBelow are the files of a commit. "delete" in a line of their own removes one.
func filesBelow(archive *txtar.Archive, name string) map[string]string {
	files := map[string]string{}
	for _, f := range archive.Files {
		if path, ok := strings.CutPrefix(f.Name, name+"/"); ok {
			files[path] = string(f.Data)
			if files[path] == "delete\n" {
				files[path] = sourcetest.Delete
			}
		}
	}
	return files
}

// site is a server of a repository.
type site struct {
	*web.Server
	t   testing.TB
	dir string
}

// open serves a repository, and follows it until the test ends.
func open(t testing.TB, dir string, options ...func(*web.Options)) *site {
	t.Helper()
	repo, err := source.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	o := web.Options{Now: func() time.Time { return now }, Log: func(text string) { t.Logf("server: %s", text) }}
	o.Fleet = web.Fleet{Name: "acme", Ref: "main", Open: func(context.Context) (*history.States, error) {
		return &history.States{Repo: repo, History: history.New(repo, ".")}, nil
	}}
	for _, change := range options {
		change(&o)
	}

	s := &site{web.New(o), t, dir}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// follow waits until the page has the head of main.
func (s *site) follow(g *sourcetest.Repo) {
	s.t.Helper()
	head := strings.TrimSpace(g.Git("rev-parse", "main"))
	for s.Head() != head {
		s.Nudge()
		time.Sleep(time.Millisecond)
		if s.t.Failed() {
			return
		}
	}
}

func (s *site) get(path string, headers ...string) *httptest.ResponseRecorder {
	s.t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://fleet.example"+path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// body is the text of an answer, with nothing packed.
func body(t testing.TB, r *httptest.ResponseRecorder) string {
	t.Helper()
	reader := io.Reader(r.Body)
	if r.Header().Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		reader = unpacked
	}
	raw, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

var asset = regexp.MustCompile(`-[0-9a-f]{12}\.`)

// tell is an answer as a story has it.
func (s *site) tell(verb, path string) string {
	r := s.get(path)
	text := body(s.t, r)
	head := fmt.Sprintf("=== %s: %d", path, r.Code)
	if at := r.Header().Get("Location"); at != "" {
		head += " to " + at
	}
	if verb == "raw" || !strings.HasPrefix(r.Header().Get("Content-Type"), "text/html") {
		return head + "\n" + asset.ReplaceAllString(strings.TrimRight(text, "\n"), ".") + "\n"
	}
	return head + "\n" + pageText(s.t, text)
}

// pageText is the text of a page as a reader without a screen gets it: what is in a line,
// and the cells of a row.
func pageText(t testing.TB, page string) string {
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	write(&b, doc)
	var lines []string
	for line := range strings.Lines(b.String()) {
		if line = strings.Trim(strings.Join(strings.Fields(line), " "), "| "); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

var (
	silent = []string{"head", "script", "style", "noscript", "dialog", "svg", "header"}
	lines  = []string{"p", "div", "h1", "h2", "h3", "tr", "li", "dt", "dd", "summary", "br", "nav", "section", "article", "table", "pre", "header", "main"}
	cells  = []string{"td", "th"}
)

func write(b *strings.Builder, n *html.Node) {
	switch {
	case n.Type == html.TextNode:
		b.WriteString(strings.ReplaceAll(n.Data, "\n", " "))
	case n.Type == html.ElementNode && slices.Contains(silent, n.Data) && !(n.Data == "header" && hasNote(n)):
		return
	}
	if n.Type == html.ElementNode && slices.Contains(lines, n.Data) {
		b.WriteString("\n")
		defer b.WriteString("\n")
	}
	if n.Type == html.ElementNode && slices.Contains(cells, n.Data) {
		defer b.WriteString(" | ")
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		write(b, c)
	}
}

// hasNote reports whether the head of a page says more than which fleet it is.
func hasNote(n *html.Node) bool {
	for c := range n.Descendants() {
		for _, a := range c.Attr {
			if a.Key == "role" && (a.Val == "note" || a.Val == "alert") {
				return true
			}
		}
	}
	return false
}
