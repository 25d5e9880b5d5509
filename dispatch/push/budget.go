// SPDX-License-Identifier: Apache-2.0

package push

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/fairlead/fairlead/dispatch/member"
)

// A member is not trusted with our memory. A few KiB that it sends may be many MiB
// of text, and {} is two bytes of text that become a hundred. So what bounds an
// answer is its text, and what it would be decoded to, which is counted before it
// is; and of those that are large one is at hand at a time for each member.
const (
	maxAnswer = 64 << 20
	// maxObject is for an answer about one object. An API server keeps none that
	// is larger than a few MiB, with all that it notes about it.
	maxObject = 8 << 20
	// maxNested is how many objects and lists there may be in an answer, and
	// maxValues how many values in all.
	maxNested = 400_000
	maxValues = 4_000_000
	// What is smaller than these needs no turn.
	smallAnswer = 1 << 20
	smallNested = 20_000

	// maxPages and maxListed are for a list as a whole.
	maxPages  = 10_000
	maxListed = 1_000_000
)

var (
	errTooLarge  = fmt.Errorf("an answer is larger than %d MiB", maxAnswer>>20)
	errLargeOne  = fmt.Errorf("an answer about one object is larger than %d MiB", maxObject>>20)
	errTooNested = fmt.Errorf("an answer has more than %d objects and lists in it", maxNested)
	errTooMany   = fmt.Errorf("an answer has more than %d values in it", maxValues)
)

// tooMuch reports whether an answer was more than a member may send, so that a
// shorter page may do.
func tooMuch(err error) bool {
	return errors.Is(err, errTooLarge) || errors.Is(err, errTooNested) || errors.Is(err, errTooMany)
}

// oneLarge has the large answers of a member come one after the other.
type oneLarge chan struct{}

func newOneLarge() oneLarge { return make(oneLarge, 1) }

// take waits for its turn. What it returns ends it, and may be called more
// than once.
func (t oneLarge) take(ctx context.Context) (done func(), err error) {
	select {
	case t <- struct{}{}:
		return sync.OnceFunc(func() { <-t }), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// read reads an answer. Where it is a large one it is at hand until done is
// called.
func (p *apiMember) read(ctx context.Context, resp *http.Response, limit int) (raw []byte, done func(), err error) {
	done = func() {}
	defer func() {
		if err != nil {
			done()
		}
	}()

	var body bytes.Buffer
	// Most answers say how long they are, and are short.
	body.Grow(int(min(max(resp.ContentLength, 0), 16<<10)) + bytes.MinRead)
	if _, err := body.ReadFrom(io.LimitReader(resp.Body, smallAnswer)); err != nil {
		return nil, done, unreachable(err)
	}
	large := body.Len() == smallAnswer
	if large {
		if done, err = p.large.take(ctx); err != nil {
			return nil, func() {}, unreachable(err)
		}
		if _, err := body.ReadFrom(io.LimitReader(resp.Body, int64(limit)+1-smallAnswer)); err != nil {
			return nil, done, unreachable(err)
		}
	}
	if body.Len() > limit {
		return nil, done, &member.Error{Reason: member.Unreachable, Err: tooLarge(limit)}
	}

	nested, err := weigh(body.Bytes())
	if err != nil {
		return nil, done, &member.Error{Reason: member.Unreachable, Err: err}
	}
	if nested > smallNested && !large {
		if done, err = p.large.take(ctx); err != nil {
			return nil, func() {}, unreachable(err)
		}
	}
	return body.Bytes(), done, nil
}

func tooLarge(limit int) error {
	if limit == maxObject {
		return errLargeOne
	}
	return errTooLarge
}

// weigh counts the objects and lists in a JSON text, and is an error where they, or
// the values, are too many. It allocates nothing.
func weigh(text []byte) (nested int, err error) {
	if len(text) <= smallNested {
		return 0, nil // there cannot be many
	}
	values := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i += stringEnd(text[i+1:])
		case '{', '[':
			nested++
			values++
		case ',':
			values++
		}
		if nested > maxNested {
			return nested, errTooNested
		}
		if values > maxValues {
			return nested, errTooMany
		}
	}
	return nested, nil
}

// stringEnd is how many bytes there are up to the quote that ends a string, that
// included.
func stringEnd(text []byte) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// pager is how far the reading of a list is. Where a page is too much it asks for
// fewer objects at a time: of the largest that there can be, one.
type pager struct {
	kind          string
	size          int // of pageSizes
	next          string
	pages, listed int
}

var pageSizes = [...]string{"500", "20", "1"}

// ask completes a query by which page is asked for.
func (g *pager) ask(query url.Values) url.Values {
	query.Set("limit", pageSizes[g.size])
	query.Del("continue")
	if g.next != "" {
		query.Set("continue", g.next)
	}
	return query
}

// shorter reports whether a page that was too much is to be asked for again with
// fewer objects in it.
func (g *pager) shorter(err error) bool {
	if !tooMuch(err) || g.size == len(pageSizes)-1 {
		return false
	}
	g.size++
	return true
}

// turnTo notes a page that was read. A list that does not end, or holds more than a
// cluster can, is an error.
func (g *pager) turnTo(next string, objects int) error {
	g.next = next
	g.pages++
	g.listed += objects
	if g.size == len(pageSizes)-1 {
		g.size-- // it was one object that made the page so large
	}
	if g.listed > maxListed {
		return &member.Error{Reason: member.Unreachable, Err: fmt.Errorf("a list of %s has more than %d objects", g.kind, maxListed)}
	}
	if next == "" {
		return nil
	}
	return g.ends()
}

// again begins the list anew.
func (g *pager) again() error {
	g.next, g.listed = "", 0
	g.pages++
	return g.ends()
}

func (g *pager) ends() error {
	if g.pages < maxPages {
		return nil
	}
	return &member.Error{Reason: member.Unreachable, Err: fmt.Errorf("a list of %s did not end after %d pages", g.kind, maxPages)}
}
