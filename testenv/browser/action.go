// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// key is a key that is no character: what it is called, and what it types.
type key struct {
	name, text string
	code       int64 // of Windows, which Chromium goes by
}

var keys = map[string]key{
	"Enter": {"Enter", "\r", 13}, "Tab": {"Tab", "", 9}, "Escape": {"Escape", "", 27}, "Space": {" ", " ", 32},
	"Down": {"ArrowDown", "", 40}, "Up": {"ArrowUp", "", 38},
}

// Goto opens an address and waits until it is loaded.
func (p *Page) Goto(address string) {
	p.t.Helper()
	p.do("open "+address, chromedp.Navigate(address))
}

// Front has the page be the one that is looked at, of those of its browser.
func (p *Page) Front() {
	p.t.Helper()
	p.do("bring to the front", command(page.BringToFront, cdp.Empty{}))
}

// Reload loads the page again.
func (p *Page) Reload() { p.t.Helper(); p.do("reload", chromedp.Reload()) }

// Address is where the page is.
func (p *Page) Address() string {
	p.t.Helper()
	return ask(p, "address", chromedp.Location())
}

// Click clicks on the first element that a CSS selector matches and that is visible.
func (p *Page) Click(selector string) {
	p.t.Helper()
	p.do("click on "+selector, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// Type types a text into an element.
func (p *Page) Type(selector, text string) {
	p.t.Helper()
	p.do("type into "+selector, chromedp.SendKeys(chromedp.CSS(selector), text, chromedp.NodeVisible))
}

// Press presses keys one after the other, wherever the focus is: characters, or names
// such as Enter, Tab and Escape.
func (p *Page) Press(names ...string) {
	p.t.Helper()
	for _, name := range names {
		k, named := keys[name]
		if !named {
			k = key{name: name, text: name}
		}
		// A page that handles the key keeps it from typing, so both are one event.
		down := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: k.name, Text: k.text, WindowsVirtualKeyCode: k.code}
		up := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: k.name, WindowsVirtualKeyCode: k.code}
		p.do("press "+name, command(input.DispatchKeyEvent, down), command(input.DispatchKeyEvent, up))
	}
}

// Wait waits until a CSS selector matches something that is visible.
func (p *Page) Wait(selector string) {
	p.t.Helper()
	p.do("wait for "+selector, chromedp.WaitVisible(chromedp.CSS(selector)))
}

// WaitFor waits until an expression in JavaScript is true, in this document or in one
// that takes its place. It needs script.
func (p *Page) WaitFor(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx, chromedp.Poll[chromedp.Void]("!!("+expression+")"))
		if err == nil {
			return
		}
		if ctx.Err() != nil || !replaced(err) {
			p.t.Fatalf("wait for %s: %v%s", expression, err, p.state())
		}
	}
}

// replaced reports whether an error says that another document has come meanwhile.
func replaced(err error) bool {
	return strings.Contains(err.Error(), "Cannot find context") || strings.Contains(err.Error(), "navigated") || strings.Contains(err.Error(), "context was destroyed")
}

// ClickOn clicks on the first element that a CSS selector matches and that has a text in
// it.
func (p *Page) ClickOn(selector, text string) {
	p.t.Helper()
	const mark = "data-clicked-by-test"
	p.WaitFor(fmt.Sprintf(`(() => { document.querySelectorAll("[%[1]s]").forEach(e => e.removeAttribute(%[1]q)); const e = Array.from(document.querySelectorAll(%[2]q)).find(e => e.textContent.includes(%[3]q)); e?.setAttribute(%[1]q, ""); return e; })()`, mark, selector, text))
	p.Click("[" + mark + "]")
}

// Eval returns what an expression in JavaScript, or what it promises, comes to.
func Eval[T any](p *Page, expression string) (value T) {
	p.t.Helper()
	text := ask(p, "evaluate "+expression, chromedp.Evaluate[string]("(async () => JSON.stringify(await ("+expression+")) ?? 'null')()", chromedp.EvalAwaitPromise))
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		p.t.Fatalf("%s: %v in %s", expression, err, text)
	}
	return value
}

// Count is how many elements a CSS selector matches.
func (p *Page) Count(selector string) int {
	p.t.Helper()
	return Eval[int](p, fmt.Sprintf("document.querySelectorAll(%q).length", selector))
}

// Text is what is seen of the first element that a CSS selector matches.
func (p *Page) Text(selector string) string {
	p.t.Helper()
	return Eval[string](p, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
}

// Resize makes the window another one.
func (p *Page) Resize(width, height int) {
	p.t.Helper()
	p.do("resize", chromedp.EmulateViewport(int64(width), int64(height)))
}

// Dark has the page be looked at by somebody who prefers it dark, or light.
func (p *Page) Dark(dark bool) {
	p.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	p.do(scheme, command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme},
		{Name: "prefers-reduced-motion", Value: "reduce"},
	}}))
}

// connection is the command of Chromium up to 148 and later; its successor is not in all
// of them.
var connection = cdp.Command[connectionParams, cdp.Empty]{Method: "Network.emulateNetworkConditions"}

type connectionParams struct {
	Offline  bool    `json:"offline"`
	Latency  float64 `json:"latency"`
	Download float64 `json:"downloadThroughput"`
	Upload   float64 `json:"uploadThroughput"`
}

// Offline cuts the page off the network, or connects it again. A stream that is open
// stays.
func (p *Page) Offline(offline bool) {
	p.t.Helper()
	p.do("network", command(connection, connectionParams{Offline: offline, Download: -1, Upload: -1}))
}
