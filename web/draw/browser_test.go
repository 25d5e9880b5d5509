// SPDX-License-Identifier: Apache-2.0

package draw_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/testenv/browser"
	"github.com/fairlead/fairlead/web/draw"
)

func TestMain(m *testing.M) { os.Exit(browser.Main(m)) }

// gallery serves every picture of a width under the page's style sheet and its policy.
func gallery(t *testing.T, width int) string {
	t.Helper()
	style, err := os.ReadFile("../assets/page.css")
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	page.WriteString(`<!doctype html><html lang="en"><head><title>Pictures</title><meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,"><link rel="stylesheet" href="/page.css"></head><body><main><h1>Pictures</h1>`)
	all := pictures()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&page, "<h2>%s</h2>\n<div class=\"picture\" data-name=%q>%s</div>\n", name, name, all[name].SVG(width))
	}
	page.WriteString(`</main></body></html>`)

	mux := http.NewServeMux()
	mux.HandleFunc("/page.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css")
		_, _ = w.Write(append(style, draw.Style...))
	})
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'self'; img-src data:")
		_, _ = w.Write([]byte(page.String()))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// outside are the texts that leave their picture, and together those that stand on each
// other. A slanted text is only asked whether it leaves.
const outside = `Array.from(document.querySelectorAll(".picture")).flatMap(picture => {
	const frame = picture.querySelector("svg").getBoundingClientRect();
	return Array.from(picture.querySelectorAll("text")).filter(text => {
		const box = text.getBoundingClientRect();
		return box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
	}).map(text => picture.dataset.name + ": " + text.textContent);
})`

const together = `Array.from(document.querySelectorAll(".picture")).flatMap(picture => {
	const level = Array.from(picture.querySelectorAll("text:not([transform])")).map(text => [text, text.getBoundingClientRect()]);
	return level.flatMap(([a, p], i) => level.slice(i + 1).filter(([b, q]) =>
		Math.min(p.right, q.right) - Math.max(p.left, q.left) > 1 && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 4
	).map(([b]) => picture.dataset.name + ": " + a.textContent + " / " + b.textContent));
})`

// In a browser, no text leaves its picture or stands on another one, and axe-core finds
// nothing serious.
func TestPicturesInBrowser(t *testing.T) {
	for _, width := range widths {
		for _, dark := range []bool{false, true} {
			p := browser.Open(t, browser.Window{Width: width + 32, Height: 900, Dark: dark})
			p.Goto(gallery(t, width))
			for _, barrier := range p.Barriers() {
				t.Errorf("%d, dark %v: %s", width, dark, barrier)
			}
			if found := browser.Eval[[]string](p, outside); len(found) > 0 {
				t.Errorf("%d: texts leave their pictures: %q", width, found)
			}
			if found := browser.Eval[[]string](p, together); len(found) > 0 {
				t.Errorf("%d: texts stand on each other: %q", width, found)
			}
		}
	}
}
