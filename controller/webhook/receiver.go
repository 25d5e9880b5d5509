// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"regexp"
	"time"

	"golang.org/x/time/rate"
)

// Hook is where one forge reports to.
type Hook struct {
	Type            Type
	Token           string // shared with the forge; without one nothing is accepted
	Namespace, Name string // of the Fleet
}

// Path is where the forge posts to: that of Flux's notification-controller for a receiver
// of the same name and token.
func Path(token, namespace, name string) string {
	digest := sha256.Sum256([]byte(token + name + namespace))
	return prefix + hex.EncodeToString(digest[:])
}

const prefix = "/hook/"

var hookPath = regexp.MustCompile(`^` + prefix + `([0-9a-f]{64})$`)

// The results of a delivery, as they are counted.
const (
	OK           = "ok"
	BadSignature = "bad-signature"
	NotFound     = "not-found"
	TooLarge     = "too-large"
	Limited      = "limited"
)

// Options of a receiver. Hook and Look are required.
type Options struct {
	// Hook finds a hook by the digest that ends its Path.
	Hook func(digest string) (Hook, bool)
	// Look is called for a delivery that is signed. It must return at once, and may be
	// called again before that look has begun.
	Look func(namespace, name string)
	// Count is called with the result of every request to a path of a hook, or of what
	// could be one.
	Count func(result string)
	// Now is the time; default time.Now.
	Now func() time.Time
}

// maxBody limits a delivery. Those of the forges are cut at less, or in their settings.
const maxBody = 1 << 20

// receiver is the handler.
type receiver struct {
	Options
	limits   *limits       // of each hook
	failures *rate.Limiter // of all together
}

// Limits of requests: a forge sends one for each push, and several for a push of several
// tags.
const (
	hookRate, hookBurst       = 5, 30
	failureRate, failureBurst = 20, 100
)

// New returns the handler of all hooks.
func New(opt Options) http.Handler {
	if opt.Count == nil {
		opt.Count = func(string) {}
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	return &receiver{opt, newLimits(), rate.NewLimiter(failureRate, failureBurst)}
}

// ServeHTTP answers 200 to a delivery that is signed, and says nothing to any other.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	m := hookPath.FindStringSubmatch(req.URL.Path)
	if m == nil {
		r.fail(w, NotFound)
		return
	}
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}

	hook, known := r.Hook(m[1])
	known = known && hook.Token != ""
	switch {
	case !known && r.failures.TokensAt(r.Now()) < 1:
		r.refuse(w, Limited) // of a flood of guesses nothing is read
		return
	case !known:
		hook = Hook{Type: GitHub, Token: m[1]} // costs what a known one does
	case !r.limits.allow(m[1], r.Now()):
		r.refuse(w, Limited)
		return
	}

	signed, err := hook.verify(req.Header, http.MaxBytesReader(w, req.Body, maxBody))
	large := (*http.MaxBytesError)(nil)
	switch {
	case errors.As(err, &large):
		r.fail(w, TooLarge)
	case !known:
		r.fail(w, NotFound)
	case err != nil || !signed:
		r.fail(w, BadSignature)
	default:
		r.accept(w, hook, req.Header)
	}
}

func (r *receiver) accept(w http.ResponseWriter, hook Hook, header http.Header) {
	r.Count(OK)
	if !hook.isPing(header) {
		r.Look(hook.Namespace, hook.Name)
	}
	w.WriteHeader(http.StatusOK)
}

// fail refuses a request, for which there is a limit over all.
func (r *receiver) fail(w http.ResponseWriter, result string) {
	if !r.failures.AllowN(r.Now(), 1) {
		result = Limited
	}
	r.refuse(w, result)
}

var statusOf = map[string]int{
	BadSignature: http.StatusUnauthorized, NotFound: http.StatusNotFound,
	TooLarge: http.StatusRequestEntityTooLarge, Limited: http.StatusTooManyRequests,
}

func (r *receiver) refuse(w http.ResponseWriter, result string) {
	r.Count(result)
	if result == Limited {
		w.Header().Set("Retry-After", "5")
	}
	w.WriteHeader(statusOf[result])
}
