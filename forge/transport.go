// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fairlead/fairlead/printable"
)

// RefusedError is an answer of a forge other than success. It never holds a token.
type RefusedError struct {
	Method, Path string
	Status       int
	Message      string    // what the forge said
	Until        time.Time // when a rate limit ends, if this is one
}

func (e *RefusedError) Error() string {
	text := fmt.Sprintf("%s %s: %d %s", e.Method, e.Path, e.Status, http.StatusText(e.Status))
	if e.Message != "" {
		text += ": " + e.Message
	}
	if !e.Until.IsZero() {
		text += fmt.Sprintf(" (rate limit until %s)", e.Until.UTC().Format(time.RFC3339))
	}
	return text
}

// refusedWith reports whether an error is an answer with one of these codes.
func refusedWith(err error, codes ...int) bool {
	var refused *RefusedError
	if !errors.As(err, &refused) {
		return false
	}
	for _, code := range codes {
		if refused.Status == code {
			return true
		}
	}
	return false
}

// mostAnswer bounds what is read of an answer, and mostMessage what is shown of one.
const (
	mostAnswer  = 64 << 20
	mostMessage = 200
)

// newHTTPClient returns the client with which a library talks to the forge at a URL:
// it carries the token, there and nowhere else, and waits where the forge asks for it.
func newHTTPClient(base *url.URL, token string) *http.Client {
	carry := &carrier{base: base, token: token, next: http.DefaultTransport}
	return &http.Client{
		Transport: &facts{token: token, next: &retry{carry}},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if !sameHost(r.URL, base) || len(via) > 3 || r.Method != via[0].Method {
				return fmt.Errorf("the forge redirects to %s: name that with --url", r.URL.Host)
			}
			return nil
		},
	}
}

func sameHost(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

// carrier sets the token on what goes to the forge. The libraries do not have it, so no
// error or log of theirs can show it, and no redirect can take it along.
type carrier struct {
	base  *url.URL
	token string
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	if !sameHost(r.URL, c.base) {
		return nil, fmt.Errorf("%s is not the forge", r.URL.Host)
	}

	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}

	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, mostAnswer), resp.Body}
	return resp, nil
}

// facts turns an answer other than success into a RefusedError, so that all libraries
// fail alike.
type facts struct {
	token string
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (f *facts) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := f.next.RoundTrip(r)
	if err != nil || resp.StatusCode < http.StatusMultipleChoices || isRedirect(resp) {
		return resp, err
	}
	defer resp.Body.Close()

	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return nil, &RefusedError{
		Method: r.Method, Path: printable.Line(r.URL.EscapedPath()), Status: resp.StatusCode,
		Message: f.shown(messageIn(text)), Until: limitEnds(resp, text),
	}
}

func isRedirect(resp *http.Response) bool {
	return resp.StatusCode < http.StatusBadRequest && resp.Header.Get("Location") != ""
}

// shown is what a forge said, as a piece of a line. A proxy that reflects requests would
// say the token.
func (f *facts) shown(text string) string {
	text = strings.ReplaceAll(text, f.token, "***")
	text = strings.Join(strings.Fields(printable.Line(text)), " ")
	if len(text) > mostMessage {
		text = strings.ToValidUTF8(text[:mostMessage], "") + "…"
	}
	return text
}

// messageIn returns the message of an answer: all three forges have it in one of these
// fields. What is no JSON is a page of something in between, and says nothing.
func messageIn(body []byte) string {
	var said struct {
		Message any `json:"message"`
		Error   any `json:"error"`
	}
	if json.Unmarshal(body, &said) != nil {
		return ""
	}
	for _, m := range []any{said.Message, said.Error} {
		if m != nil {
			return fmt.Sprint(m)
		}
	}
	return ""
}
