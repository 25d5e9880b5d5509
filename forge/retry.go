// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retry sends a request again that a forge could not take: for a rate limit when that
// ends, and after a failure of the server a little later. How long in all is up to the
// context of the request. A POST is not sent again after a failure, because the forge may
// have acted on it all the same: Post looks first what is there.
type retry struct {
	next http.RoundTripper
}

// now and wait are the clock, which tests replace.
var (
	now  = time.Now
	wait = sleep
)

// Waits of a server that does not say how long.
const (
	firstWait = time.Second
	mostWait  = 30 * time.Second
	// abuseWait is GitHub's documented minimum for a secondary limit.
	abuseWait = time.Minute
)

// sleep waits, or until the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// RoundTrip implements http.RoundTripper.
func (t *retry) RoundTrip(r *http.Request) (*http.Response, error) {
	pause := firstWait
	for {
		resp, err := t.next.RoundTrip(r)
		asked, again := t.again(r, resp, err)
		if !again {
			return resp, err
		}

		pause, asked = min(2*pause, mostWait), max(asked, pause)
		if deadline, ok := r.Context().Deadline(); ok && now().Add(asked).After(deadline) {
			return resp, err // it would come too late
		}
		next, unable := replay(r)
		if unable != nil {
			return resp, err
		}

		r = next
		if resp != nil {
			resp.Body.Close()
		}
		if err := wait(r.Context(), asked); err != nil {
			return nil, err
		}
	}
}

// again reports whether a request is worth another try, and how long the forge asks to
// wait before it.
func (t *retry) again(r *http.Request, resp *http.Response, err error) (time.Duration, bool) {
	if r.Context().Err() != nil {
		return 0, false
	}
	if err != nil {
		return 0, r.Method != http.MethodPost && isNetwork(err)
	}

	if resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusTooManyRequests {
		text := peek(resp)
		until := limitEnds(resp, text)
		return until.Sub(now()), !until.IsZero()
	}
	return 0, r.Method != http.MethodPost && resp.StatusCode >= http.StatusInternalServerError
}

// isNetwork reports whether an error is one of the way to the forge, and no decision of
// ours.
func isNetwork(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// peek reads the beginning of an answer and leaves it to be read.
func peek(resp *http.Response) []byte {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(text), resp.Body), resp.Body}
	return text
}

// limitEnds returns when a rate limit ends that an answer tells of, and nothing where
// the answer is another refusal: a 403 is most often a permission that is missing.
func limitEnds(resp *http.Response, text []byte) time.Time {
	if resp.StatusCode != http.StatusForbidden && resp.StatusCode != http.StatusTooManyRequests {
		return time.Time{}
	}

	if after, ok := retryAfter(resp.Header.Get("Retry-After")); ok {
		return after
	}
	for _, prefix := range []string{"X-RateLimit-", "RateLimit-"} {
		reset, err := strconv.ParseInt(resp.Header.Get(prefix+"Reset"), 10, 64)
		if err == nil && resp.Header.Get(prefix+"Remaining") == "0" {
			return time.Unix(reset, 0)
		}
	}
	switch said := strings.ToLower(messageIn(text)); {
	case strings.Contains(said, "secondary rate limit"), strings.Contains(said, "abuse detection"):
		return now().Add(abuseWait)
	case resp.StatusCode == http.StatusTooManyRequests:
		return now().Add(firstWait)
	}
	return time.Time{}
}

// retryAfter reads the header of that name: seconds or a date.
func retryAfter(value string) (time.Time, bool) {
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 {
		return now().Add(time.Duration(seconds) * time.Second), true
	}
	at, err := http.ParseTime(value)
	return at, err == nil
}

// replay returns a request with its body to be read once more.
func replay(r *http.Request) (*http.Request, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, nil
	}
	if r.GetBody == nil {
		return nil, errors.New("the body of a request cannot be sent twice")
	}

	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = body
	return r, nil
}
