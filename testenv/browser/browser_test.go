// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/testenv/browser"
)

func TestMain(m *testing.M) { os.Exit(browser.Main(m)) }

const page = `<!doctype html><html lang="en"><head><title>Page</title><link rel="icon" href="data:,">
<style>body { background: white; color: black } @media (prefers-color-scheme: dark) { body { background: black; color: white } }</style>
</head><body><main><h1>Page</h1><p id="out">nothing</p>
<details><summary>More</summary><p id="more">more</p></details>
<label>Name <input id="name"></label>
<noscript><p id="without">without script</p></noscript></main>
<script>
document.addEventListener("keydown", e => { if (e.target.tagName === "INPUT") return; if (e.key === "/") { document.getElementById("name").focus(); e.preventDefault(); } if (e.key === "j") document.getElementById("out").textContent = "down"; });
</script>%s</body></html>`

// serve serves the page with more in it, under a policy.
func serve(t *testing.T, policy, more string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if policy != "" {
			w.Header().Set("Content-Security-Policy", policy)
		}
		switch r.URL.Path {
		case "/header":
			fmt.Fprintf(w, `<!doctype html><html lang="en"><title>h</title><link rel="icon" href="data:,"><p id="out">%s`, r.Header.Get("X-Test"))
		case "/":
			fmt.Fprintf(w, page, more)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestWhatIsDone(t *testing.T) {
	p := browser.Open(t, browser.Window{})
	url := serve(t, "", "")
	p.Goto(url)
	if got := p.Text("#out"); got != "nothing" {
		t.Errorf("text %q", got)
	}

	p.Press("j")
	p.WaitFor(`document.getElementById("out").textContent === "down"`)
	p.ClickOn("summary", "More")
	p.Wait("#more")
	p.Press("/")
	p.Type("#name", "jib")
	p.Press("Tab")
	if got := browser.Eval[string](p, `document.getElementById("name").value`); got != "jib" {
		t.Errorf("typed %q", got)
	}
	if got := browser.Eval[[]int](p, `Promise.resolve([1, 2])`); len(got) != 2 {
		t.Errorf("promised %v", got)
	}
	if p.Count("p") != 2 || p.Count("#without") != 0 {
		t.Errorf("%d paragraphs", p.Count("p"))
	}

	browser.Eval[any](p, `setTimeout(() => location.href = "/header?", 50)`)
	p.WaitFor(`location.pathname === "/header"`)
	p.Goto(url)
	p.Click("summary")
	p.Reload()
	if got := p.Text("#out"); got != "nothing" || !strings.HasPrefix(p.Address(), "http://127.0.0.1") {
		t.Errorf("after a reload: %q at %s", got, p.Address())
	}
}

func TestWindow(t *testing.T) {
	url := serve(t, "", "")
	p := browser.Open(t, browser.Window{Width: 390, Height: 844, Dark: true, Headers: map[string]string{"X-Test": "1"}})
	p.Goto(url)
	if got := browser.Eval[string](p, `getComputedStyle(document.body).backgroundColor + innerWidth`); got != "rgb(0, 0, 0)390" {
		t.Errorf("dark and narrow: %s", got)
	}
	p.Dark(false)
	p.Resize(1280, 800)
	if got := browser.Eval[string](p, `getComputedStyle(document.body).backgroundColor + innerWidth`); got != "rgb(255, 255, 255)1280" {
		t.Errorf("light and wide: %s", got)
	}
	p.Goto(url + "/header")
	if got := p.Text("#out"); got != "1" {
		t.Errorf("header %q", got)
	}
}

func TestWithoutScript(t *testing.T) {
	p := browser.Open(t, browser.Window{NoScript: true})
	p.Goto(serve(t, "", ""))
	p.Wait("#without")
}

// What goes wrong in a page is found.
func TestFaults(t *testing.T) {
	for name, at := range map[string]struct{ policy, more, fault string }{
		"console":          {"", `<script>console.error("this is", "bad")</script>`, "console: this is bad"},
		"exception":        {"", `<script>throw new Error("thrown")</script>`, "thrown"},
		"promise":          {"", `<script>Promise.reject(new Error("broken"))</script>`, "broken"},
		"forbidden script": {"default-src 'self'; style-src 'unsafe-inline'; img-src data:", "", "Content Security Policy"},
		"forbidden style":  {"default-src 'self' 'unsafe-inline'; style-src 'self'; img-src data:", `<p style="color: red">`, "Content Security Policy"},
		"missing file":     {"", `<img src="/missing.png" alt="x">`, "404"},
		"elsewhere":        {"", `<img src="http://example.com/x.png" alt="x">`, "ERR_NAME_NOT_RESOLVED"},
	} {
		t.Run(name, func(t *testing.T) {
			p := browser.Open(t, browser.Window{})
			p.Goto(serve(t, at.policy, at.more))
			faults := strings.Join(p.Faults(), "\n")
			if !strings.Contains(faults, at.fault) {
				t.Errorf("found %q", faults)
			}
			p.Expect("")
			if left := p.Faults(); len(left) > 0 {
				t.Errorf("expected, and still there: %q", left)
			}
		})
	}
}

func TestOffline(t *testing.T) {
	p := browser.Open(t, browser.Window{})
	url := serve(t, "", "")
	p.Goto(url)
	p.Expect("ERR_INTERNET_DISCONNECTED")
	p.Offline(true)
	if got := browser.Eval[bool](p, `fetch("/").then(() => true, () => false)`); got {
		t.Error("it is still on the network")
	}
	p.Offline(false)
	if got := browser.Eval[bool](p, `fetch("/").then(() => true, () => false)`); !got {
		t.Error("it is not back on the network")
	}
}

func TestBarriers(t *testing.T) {
	p := browser.Open(t, browser.Window{})
	p.Goto(serve(t, "default-src 'unsafe-inline'; img-src data:", ""))
	if found := p.Barriers(); len(found) > 0 {
		t.Errorf("in a page without any: %v", found)
	}

	p.Goto(serve(t, "", `<button></button><p style="color: #eee; background: white">pale</p>`))
	var rules []string
	for _, b := range p.Barriers() {
		rules = append(rules, b.Rule)
		if !strings.Contains(b.String(), b.Rule) || !strings.Contains(b.String(), "<") {
			t.Errorf("says %s", b)
		}
	}
	if got := strings.Join(rules, " "); got != "button-name color-contrast" {
		t.Errorf("found %s", got)
	}
}

func TestScreenshot(t *testing.T) {
	p := browser.Open(t, browser.Window{Width: 400, Height: 300})
	p.Goto(serve(t, "", `<div style="height: 900px; background: linear-gradient(red, blue)">`))
	for name, at := range map[string]struct {
		raw    []byte
		height int
	}{"window": {p.Screenshot(), 300}, "page": {p.FullScreenshot(), 1000}} {
		picture, err := png.DecodeConfig(bytes.NewReader(at.raw))
		if err != nil || picture.Width != 400 || picture.Height < at.height {
			t.Errorf("%s: %d by %d, %v", name, picture.Width, picture.Height, err)
		}
	}
}

// Pages have nothing in common but with those beside them.
func TestPagesAreApart(t *testing.T) {
	url := serve(t, "", "")
	first, second := browser.Open(t, browser.Window{}), browser.Open(t, browser.Window{})
	beside := first.Beside()
	for _, p := range []*browser.Page{first, second, beside} {
		p.Goto(url)
	}
	browser.Eval[any](first, `localStorage.setItem("a", "1")`)
	if got := browser.Eval[*string](second, `localStorage.getItem("a")`); got != nil {
		t.Errorf("the second page has %q", *got)
	}
	beside.Front()
	if got := browser.Eval[string](beside, `localStorage.getItem("a")`); got != "1" {
		t.Errorf("the page beside has %q", got)
	}
}

// axe-core is as it is published, with its licences beside it.
func TestAxeIsAsPublished(t *testing.T) {
	for file, want := range map[string]string{
		"axe.min.js":            "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c",
		"LICENSE":               "af175b9d96ee93c21a036152e1b905b0b95304d4ae8c2c921c7609100ba8df7e",
		"LICENSE-3RD-PARTY.txt": "4f8563870d0fca38bbc3e00b6f670cb7fa9f380ba9f26a7f7d1184a6b18b1653",
	} {
		raw, err := os.ReadFile("axe/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s has the hash %x", file, sum)
		}
	}
}
