// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a page may take for one thing that is asked of it.
const patience = 20 * time.Second

// Window is what a page is looked at in. Zero values are a desk in daylight.
type Window struct {
	Width, Height int // 1280 by 800
	Dark          bool
	NoScript      bool
	// Headers are sent with every request.
	Headers map[string]string
}

// Page is a tab.
type Page struct {
	t      testing.TB
	window Window
	ctx    context.Context

	mu       sync.Mutex
	faults   []string
	expected []string
}

// Open opens a page that ends with the test. The test fails if something went wrong in
// it.
func Open(t testing.TB, w Window) *Page {
	t.Helper()
	Require(t)
	if w.Width == 0 {
		w.Width, w.Height = 1280, 800
	}
	return openIn(t, start(t), w, chromedp.WithNewBrowserContext())
}

// Beside opens another tab of the same browser: they share cookies, storage and
// connections.
func (p *Page) Beside() *Page {
	p.t.Helper()
	return openIn(p.t, p.ctx, p.window)
}

func openIn(t testing.TB, parent context.Context, w Window, options ...chromedp.ContextOption) *Page {
	t.Helper()
	p := &Page{t: t, window: w}
	ctx, end := chromedp.NewContext(parent, append(options, chromedp.WithListener(p.listen))...)
	p.ctx = ctx
	if err := chromedp.Do(ctx); err != nil {
		end()
		t.Fatalf("page: %v", err)
	}
	t.Cleanup(func() {
		end()
		for _, fault := range p.Faults() {
			t.Errorf("in the browser: %s", fault)
		}
	})

	p.do("window", command(runtime.Enable, cdp.Empty{}), command(cdplog.Enable, cdp.Empty{}), command(network.Enable, network.EnableParams{}),
		command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: w.NoScript}))
	p.Resize(w.Width, w.Height)
	if len(w.Headers) > 0 {
		headers := network.Headers{}
		for name, value := range w.Headers {
			headers[name] = value
		}
		p.do("headers", command(network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: headers}))
	}
	p.Dark(w.Dark)
	return p
}

// listen collects what goes wrong.
func (p *Page) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		p.fault(fmt.Sprintf("script: %s (%s:%d)", text, e.ExceptionDetails.URL, e.ExceptionDetails.LineNumber))
	case *runtime.EventConsoleAPICalled:
		if e.Type != runtime.ConsoleAPICalledTypeError && e.Type != runtime.ConsoleAPICalledTypeAssert {
			return
		}
		var words []string
		for _, a := range e.Args {
			words = append(words, strings.Trim(string(a.Value), `"`)+a.Description)
		}
		p.fault("console: " + strings.Join(words, " "))
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError || e.Entry.Source == cdplog.EntrySourceSecurity {
			p.fault(fmt.Sprintf("%s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	}
}

func (p *Page) fault(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, text)
}

// Expect has the test go on although something goes wrong: whatever has this text in it.
func (p *Page) Expect(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = append(p.expected, text)
}

// Faults returns what went wrong so far and was not expected.
func (p *Page) Faults() (faults []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
next:
	for _, f := range p.faults {
		for _, text := range p.expected {
			if strings.Contains(f, text) {
				continue next
			}
		}
		faults = append(faults, f)
	}
	return faults
}

// action is something that is asked of a page.
type action = chromedp.Action[chromedp.Void]

// command is one of the debugging protocol.
func command[P, R any](c cdp.Command[P, R], params P) action {
	return func(ctx context.Context, t *chromedp.Target) (none chromedp.Void, err error) {
		_, err = cdp.Call(ctx, t, c, params)
		return none, err
	}
}

// do does something, which must succeed within the patience that a test has.
func (p *Page) do(what string, actions ...action) {
	p.t.Helper()
	for _, a := range actions {
		ask(p, what, a)
	}
}

// ask does something that has an answer.
func ask[T any](p *Page, what string, a chromedp.Action[T]) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	answer, err := chromedp.Run(ctx, a)
	if err != nil {
		p.t.Fatalf("%s: %v%s", what, err, p.state())
	}
	return answer
}

// state says where a page is, for what a test prints when it fails.
func (p *Page) state() string {
	ctx, cancel := context.WithTimeout(p.ctx, time.Second)
	defer cancel()
	address, _ := chromedp.Run(ctx, chromedp.Location())
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body?.innerText.slice(0, 1500) ?? ''"))
	return fmt.Sprintf("\nat %s:\n%s\n%s", address, text, strings.Join(p.Faults(), "\n"))
}
