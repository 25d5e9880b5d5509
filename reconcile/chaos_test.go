// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// chaos is the way to one member.
type chaos struct {
	way way

	mu      sync.Mutex
	rng     *rand.Rand
	mood    string
	open    chan struct{} // closed when a black hole ends
	deletes []string      // the objects of all deletes that were sent
	sent    []sent        // in the order in which it arrived
}

func (c *chaos) deleted() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.deletes)
}

// moods are what can be wrong with the way to a member.
var moods = []string{"well", "slow", "resets", "loses answers", "black hole", "409", "429", "500", "503", "proxy", "breaks off"}

func (c *chaos) rage(mood int) {
	c.calm()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mood = moods[mood]
}

func (c *chaos) calm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mood = "well"
	close(c.open)
	c.open = make(chan struct{})
}

// config reaches the member for as long as a process lives.
func (c *chaos) config(l *life) *rest.Config {
	config := rest.CopyConfig(c.way.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) { return c.roundTrip(l, next, req) })
	})
	return config
}

var errChaos = errors.New("injected")

func (c *chaos) roundTrip(l *life, next http.RoundTripper, req *http.Request) (*http.Response, error) {
	c.mu.Lock()
	mood, dice, open := c.mood, c.rng.IntN(100), c.open
	if req.Method == http.MethodDelete {
		c.deletes = append(c.deletes, path.Base(req.URL.Path))
	}
	c.mu.Unlock()
	select {
	case <-l.over:
		return nil, errChaos
	default:
	}
	if dice < 50 {
		mood = "well" // nothing goes wrong every time
	}
	switch mood {
	case "slow":
		time.Sleep(time.Duration(dice) * time.Millisecond / 4)
	case "resets":
		return nil, errChaos
	case "black hole":
		select {
		case <-open:
		case <-l.over:
		case <-req.Context().Done():
		}
		return nil, errChaos
	case "409", "429", "500", "503":
		return faultAnswer(req, mood), nil
	case "proxy":
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}},
			Body: io.NopCloser(strings.NewReader("<html>log in</html>")), Request: req}, nil
	}
	c.note(l, req)
	resp, err := next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	select {
	case <-l.over:
		resp.Body.Close()
		return nil, errChaos // it was done, and nobody hears of it
	default:
	}
	switch mood {
	case "loses answers":
		resp.Body.Close()
		return nil, errChaos
	case "breaks off":
		resp.Body = broken{resp.Body, io.LimitReader(resp.Body, int64(dice))}
	}
	return resp, nil
}

// note keeps the commit whose content a request sends.
func (c *chaos) note(l *life, req *http.Request) {
	if req.Method != http.MethodPatch || req.GetBody == nil {
		return
	}
	body, err := req.GetBody()
	if err != nil {
		return
	}
	raw, _ := io.ReadAll(body)
	if m := revisionIn.FindSubmatch(raw); m != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sent = append(c.sent, sent{path.Base(req.URL.Path), string(m[1]), l.pod})
	}
}

var revisionIn = regexp.MustCompile(`"fairlead.dev/revision":"([0-9a-f]{40})"`)

// sent is the content of an object that a member was sent: as of a commit, by a replica.
type sent struct{ object, commit, pod string }

// setBack says of which objects the member was sent an older content after a newer one.
func (c *chaos) setBack(line []string) (wrong []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	newest := map[string]sent{}
	for _, s := range c.sent {
		was := newest[s.object]
		if was.commit != "" && slices.Index(line, s.commit) < slices.Index(line, was.commit) {
			wrong = append(wrong, fmt.Sprintf("%s sent %s as of %.7s after %s had sent it as of %.7s", s.pod, s.object, s.commit, was.pod, was.commit))
		}
		newest[s.object] = s
	}
	return wrong
}

// broken is an answer that ends too early.
type broken struct {
	io.Closer
	part io.Reader
}

func (b broken) Read(p []byte) (int, error) {
	n, err := b.part.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func faultAnswer(req *http.Request, mood string) *http.Response {
	code, _ := strconv.Atoi(mood)
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"injected"}`, map[int]string{
		401: "Unauthorized", 409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable",
	}[code], code)
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req}
}
