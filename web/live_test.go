// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fairlead/fairlead/testenv/browser"
)

// A click on a commit of the ruler shows every page as of then.
func TestTimeTravelInBrowser(t *testing.T) {
	g := acme(t)
	_, url := visit(t, g)
	p := browser.Open(t, browser.Window{})
	p.Goto(url + "/ruler")
	before := g.Git("rev-parse", "HEAD~6") // web is held, and 1.18.0 has not come yet

	p.Click(fmt.Sprintf(`svg a.commit[href*="%s"]`, before[:7]))
	p.WaitFor(`!!document.querySelector(".past")`)
	p.Click(`header nav a[href^="/?"], header nav a[href^="/"]`)
	p.WaitFor(`!!document.querySelector("#matrix") && !!document.querySelector(".past")`)
	if text := p.Text("#matrix"); !strings.Contains(text, "web") || strings.Contains(text, "H3") {
		t.Errorf("as of %s:\n%s", before, text)
	}
	p.ClickOn(".past a", "back to now")
	p.WaitFor(`!document.querySelector(".past") && document.querySelector("#matrix").innerText.includes("H3")`)
}

// A push appears without a reload; what is folded open stays open, and nothing jumps.
func TestPushInBrowser(t *testing.T) {
	g := acme(t)
	s, url := visit(t, g)
	p := browser.Open(t, browser.Window{Width: 1280, Height: 300})
	p.Goto(url)
	p.ClickOn("tr.group a", "search")
	p.WaitFor(`document.querySelector("#matrix").innerText.includes("indexer")`)
	p.WaitFor(`document.querySelector("#live").dataset.state === "live"`)
	browser.Eval[any](p, `(window.sameDocument = true, scrollTo(0, 60), null)`)

	g.Commit("cart 3.3.0, and held", map[string]string{"shop/cart.yaml": deployment("shop", "cart", 2, "3.3.0", "256Mi"), "policies/shop.yaml": policy("shop", "rest", "cart", "[eu-1, us-1]", "  suspension: {dispatching: true}\n")})
	s.follow(g)
	p.WaitFor(`document.querySelector("header").innerText.includes("cart 3.3.0")`)
	p.WaitFor(`Array.from(document.querySelectorAll("#matrix tr")).some(tr => tr.innerText.includes("cart") && tr.innerText.includes("H"))`)
	if !browser.Eval[bool](p, `window.sameDocument === true && document.querySelector("#matrix").innerText.includes("indexer")`) {
		t.Error("the page was loaded again, or the fold has closed")
	}
	if y := browser.Eval[float64](p, "scrollY"); y != 60 {
		t.Errorf("it scrolled to %v", y)
	}
}

// A page says when it is cut off, and catches up.
func TestConnectionInBrowser(t *testing.T) {
	g := acme(t)
	s, _ := visit(t, g)
	server := httptest.NewServer(s)
	p := browser.Open(t, browser.Window{})
	p.Expect("ERR_")
	p.Goto(server.URL)
	p.WaitFor(`document.querySelector("#live").dataset.state === "live"`)

	address := server.Listener.Addr().String()
	server.CloseClientConnections()
	server.Close()
	p.WaitFor(`document.querySelector("#live").dataset.state === "lost"`)
	g.Commit("web 1.18.3", map[string]string{"shop/web.yaml": deployment("shop", "web", 15, "1.18.3", "768Mi")})
	s.follow(g)

	again := listenAt(t, address, s)
	t.Cleanup(again.Close)
	t.Cleanup(again.CloseClientConnections)
	p.WaitFor(`document.querySelector("#live").dataset.state === "live" && document.querySelector("header").innerText.includes("web 1.18.3")`)
}

// Seven tabs of one browser are all live, and more pages can be opened: HTTP/1.1 allows
// six connections to a server, and they have one stream together.
func TestSevenTabsInBrowser(t *testing.T) {
	g := acme(t)
	s, _ := visit(t, g)
	var streams atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/events" {
			streams.Add(1)
			defer streams.Add(-1)
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)

	tabs := []*browser.Page{browser.Open(t, browser.Window{})}
	for range 6 {
		tabs = append(tabs, tabs[0].Beside())
	}
	for _, tab := range tabs {
		tab.Goto(server.URL)
		tab.WaitFor(`document.querySelector("#live").dataset.state === "live"`)
	}
	g.Commit("web 1.18.3", map[string]string{"shop/web.yaml": deployment("shop", "web", 15, "1.18.3", "768Mi")})
	s.follow(g)
	for _, tab := range tabs {
		tab.WaitFor(`document.querySelector("header").innerText.includes("web 1.18.3")`)
	}
	if n := streams.Load(); n != 1 {
		t.Errorf("%d streams are open", n)
	}

	// Whoever listens goes; another one does from then on.
	for _, tab := range tabs[:6] {
		tab.Goto(server.URL + "/?at=HEAD~1")
	}
	g.Commit("web 1.18.4", map[string]string{"shop/web.yaml": deployment("shop", "web", 15, "1.18.4", "768Mi")})
	s.follow(g)
	tabs[6].WaitFor(`document.querySelector("header").innerText.includes("web 1.18.4")`)
}

// listenAt serves where another server was.
func listenAt(t *testing.T, address string, s *site) *httptest.Server {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(s)
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	return server
}
