// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/source/sourcetest"
	"github.com/fairlead/fairlead/testenv/browser"
	"github.com/fairlead/fairlead/web"
)

func TestMain(m *testing.M) { os.Exit(browser.Main(m)) }

// pages of the fleet acme, by the name of their picture.
var pages = map[string]string{
	"matrix":   "/",
	"ruler":    "/ruler",
	"holds":    "/holds",
	"timeline": "/timeline",
	"clusters": "/clusters",
	"cluster":  "/clusters/us-1",
	"policies": "/policies",
	"policy":   "/policies/PropagationPolicy/shop/web",
	"template": "/templates/deployment.apps/shop/web",
	"plan":     "/plan?head=raise-web",
	"search":   "/search?q=web",
	"past":     "/?at=HEAD~5",
	"error":    "/clusters/nowhere",
}

// visit serves a fleet to browsers, and waits until there is something to see.
func visit(t *testing.T, g *sourcetest.Repo, options ...func(*web.Options)) (s *site, url string) {
	t.Helper()
	browser.Require(t)
	s = open(t, g.Dir, options...)
	s.follow(g)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections) // a stream does not end by itself
	return s, server.URL
}

// goTo opens a page; that of an error may say so on the console.
func goTo(p *browser.Page, url, path string) {
	if path == pages["error"] {
		p.Expect("404")
	}
	p.Goto(url + path)
}

func TestMatrixInBrowser(t *testing.T) {
	_, url := visit(t, acme(t))
	p := browser.Open(t, browser.Window{})
	p.Goto(url)

	held := browser.Eval[[]string](p, `Array.from(document.querySelectorAll("#matrix tr:not(.group) td.held a"), a => a.title)`)
	if len(held) != 6 || !strings.HasPrefix(held[3], "held, 3 commits wait, 2 replicas") {
		t.Errorf("held cells: %q", held)
	}
	// State is never told by color alone.
	bare := browser.Eval[[]string](p, `Array.from(document.querySelectorAll("#matrix td")).filter(td => td.className.match(/held|failed|deferred|rolling|behind/) && !td.innerText.trim()).map(td => td.outerHTML)`)
	if len(bare) > 0 {
		t.Errorf("cells without a glyph: %q", bare)
	}
	if n := browser.Eval[int](p, `document.querySelectorAll("#matrix th:not([scope])").length`); n > 0 {
		t.Errorf("%d headers have no scope", n)
	}
}

func TestFoldsInBrowser(t *testing.T) {
	_, url := visit(t, acme(t))
	p := browser.Open(t, browser.Window{})
	p.Goto(url)
	const search = `document.querySelector("#matrix").innerText.includes("indexer")`

	if browser.Eval[bool](p, search) {
		t.Error("search is open, although all of it is well")
	}
	p.ClickOn("tr.group a", "search")
	p.WaitFor(search)
	p.ClickOn("tr.group a", "search")
	p.WaitFor("!" + search)
}

func TestSearchInBrowser(t *testing.T) {
	_, url := visit(t, acme(t))
	p := browser.Open(t, browser.Window{})
	p.Goto(url)
	p.Press("/")
	p.Type("input[name=q]", "indexer")
	p.Press("Enter")
	p.WaitFor(`document.querySelector("main").innerText.includes("indexer") && location.pathname.endsWith("/search")`)
	p.Click(`main a[href*="/templates/deployment.apps/search/indexer"]`)
	p.WaitFor(`location.pathname.includes("/templates/") && document.querySelector("h1").innerText.includes("indexer")`)
}

// Without script, every page has all that it has with it.
func TestWithoutScriptInBrowser(t *testing.T) {
	g := acme(t)
	proposal(g)
	_, url := visit(t, g)
	with, without := browser.Open(t, browser.Window{}), browser.Open(t, browser.Window{NoScript: true})
	for name, path := range pages {
		goTo(with, url, path)
		goTo(without, url, path)
		const words = `document.querySelector("main").innerText.replace(/\s+/g, " ")`
		if a, b := browser.Eval[string](with, words), browser.Eval[string](without, words); a != b || len(a) < 20 {
			t.Errorf("%s: with script\n%s\nwithout\n%s", name, a, b)
		}
	}
}

func TestKeysInBrowser(t *testing.T) {
	_, url := visit(t, acme(t))
	p := browser.Open(t, browser.Window{})
	p.Goto(url)
	focus := func() string {
		return browser.Eval[string](p, `document.activeElement.innerText ?? document.activeElement.tagName`)
	}

	p.Press("j")
	first := focus()
	p.Press("j", "j", "k")
	if second := focus(); first == second || strings.TrimSpace(second) == "" {
		t.Errorf("j goes from %q to %q", first, second)
	}
	p.Press("?")
	p.Wait("dialog[open]")
	p.Press("Escape")
	p.WaitFor(`!document.querySelector("dialog[open]")`)
	p.Press("/")
	if got := browser.Eval[string](p, `document.activeElement.name`); got != "q" {
		t.Errorf("/ goes to %q", got)
	}
	p.Press("j")
	if got := browser.Eval[string](p, `document.querySelector("input[name=q]").value`); got != "j" {
		t.Errorf("a key in the search is not typed: %q", got)
	}
	p.Press("Escape")
	p.Press("j", "j", "o")
	p.WaitFor(`location.pathname.includes("/templates/") || location.search.includes("shop")`)

	// What a pointer can reach, Tab reaches, and it is seen where that is.
	p.Goto(url)
	p.Press("Tab")
	if got := focus(); !strings.Contains(got, "Skip") {
		t.Errorf("Tab goes to %q first", got)
	}
	for range 12 {
		p.Press("Tab")
		if !browser.Eval[bool](p, `getComputedStyle(document.activeElement).outlineStyle !== "none"`) {
			t.Errorf("%q has the focus and does not show it", focus())
		}
	}
}

// No page is wider than a telephone.
func TestNarrowInBrowser(t *testing.T) {
	g := acme(t)
	proposal(g)
	_, url := visit(t, g)
	p := browser.Open(t, browser.Window{Width: 390, Height: 844})
	for name, path := range pages {
		goTo(p, url, path)
		if wide := browser.Eval[int](p, "document.documentElement.scrollWidth"); wide > 390 {
			widest := browser.Eval[[]string](p, `Array.from(document.querySelectorAll("body *")).filter(e => e.getBoundingClientRect().right > 390 && !e.closest(".wide")).slice(0, 3).map(e => e.outerHTML.slice(0, 120))`)
			t.Errorf("%s is %d wide: %q", name, wide, widest)
		}
	}
}

// axe-core finds nothing serious on any page, in no light and at no width.
func TestBarriersInBrowser(t *testing.T) {
	g := acme(t)
	proposal(g)
	_, url := visit(t, g)
	for _, w := range []browser.Window{{}, {Dark: true}, {Width: 390, Height: 844}, {Width: 390, Height: 844, Dark: true}} {
		p := browser.Open(t, w)
		for name, path := range pages {
			goTo(p, url, path)
			for _, barrier := range p.Barriers() {
				t.Errorf("%s at %d, dark %v: %s", name, w.Width, w.Dark, barrier)
			}
		}
	}
}

// What people write into git is text, wherever it is shown: no policy has to stop it.
func TestHostileTextInBrowser(t *testing.T) {
	const evil = `"><img src=x onerror=pwned=1><script>pwned=1</script>'{{.}}`
	g := acme(t)
	held := strings.ReplaceAll(webPolicy("[eu-2, us-1, us-2]", ""), "wait until eu-1 has soaked", "'"+strings.ReplaceAll(evil, "'", "''")+"'")
	g.Git("config", "user.name", evil)
	g.Commit(evil+"\n\n"+evil, map[string]string{
		"policies/web.yaml": sourcetest.Delete,
		"policies/" + strings.ReplaceAll(evil, "/", "") + ".yaml": held,
		"shop/web.yaml": strings.ReplaceAll(deployment("shop", "web", 13, "1.19.0", "768Mi"), "labels: {app: web}", "labels: {app: web, x: '"+strings.ReplaceAll(evil, "'", "''")+"'}"),
	})
	g.Git("branch", "raise-web")
	g.Commit(evil, map[string]string{"policies/search.yaml": evil + ": ["})
	_, url := visit(t, g)

	p := browser.Open(t, browser.Window{})
	shown := 0
	for name, path := range pages {
		goTo(p, url, path)
		if browser.Eval[bool](p, `"pwned" in window || !!document.querySelector("img")`) {
			t.Errorf("%s: what somebody wrote is markup", name)
		}
		if browser.Eval[bool](p, `document.body.innerText.includes("onerror=pwned")`) {
			shown++
		}
	}
	if shown == 0 {
		t.Error("no page shows it")
	}
}

// Every page can be taken as a picture; with -update those in docs/img are written anew.
// They are not compared: a font is another one on another machine.
func TestPictures(t *testing.T) {
	g := acme(t)
	proposal(g)
	_, url := visit(t, g)
	for _, w := range []struct {
		browser.Window
		name  string
		pages []string
	}{
		{browser.Window{Width: 1280, Height: 720}, "", slices.Sorted(maps.Keys(pages))},
		{browser.Window{Width: 1280, Height: 720, Dark: true}, "-dark", []string{"matrix", "ruler", "template"}},
		{browser.Window{Width: 390, Height: 844}, "-narrow", []string{"matrix", "ruler", "template"}},
	} {
		p := browser.Open(t, w.Window)
		for _, name := range w.pages {
			goTo(p, url, pages[name])
			if !strings.Contains(pages[name], "at=") {
				p.WaitFor(`document.querySelector("#live").dataset.state === "live"`)
			}
			picture := p.Screenshot()
			if len(picture) > 150<<10 {
				t.Errorf("%s%s: %d bytes", name, w.name, len(picture))
			}
			if !*update {
				continue
			}
			if err := os.WriteFile(filepath.Join("..", "docs", "img", name+w.name+".png"), picture, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
