// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// expired is a list whose next page the server no longer has.
	expired Reason = "Expired"
	// longestWait caps what a member may ask for.
	longestWait = 5 * time.Minute
	// longestText caps what a member may say.
	longestText = 1024
)

// refusal is the error in an answer that is none of the expected ones. With
// secret the server's words are left out: they may quote what was sent.
func refusal(code int, header http.Header, body []byte, secret bool) *Error {
	var s metav1.Status
	if json.Unmarshal(body, &s) != nil || s.Kind != "Status" {
		if code == http.StatusNotFound {
			// The server has no such path, which says nothing about objects.
			return &Error{Reason: NotServed, Err: errors.New("404 Not Found")}
		}
		if code == http.StatusTooManyRequests || code == http.StatusUnauthorized {
			return &Error{Reason: reasonOf(code, s), RetryAfter: retryAfter(header), Err: errors.New(codeText(code, ""))}
		}
		return notKubernetes(code)
	}
	text := s.Message
	if secret || text == "" {
		text = codeText(code, s.Reason)
	}
	if len(text) > longestText {
		text = text[:longestText] + "…"
	}
	if code == http.StatusUnprocessableEntity && strings.Contains(s.Message, "immutable") {
		text += "; what cannot change has to be made anew: give the object another name, or remove it, and add it again when it is gone"
	}
	return &Error{Reason: reasonOf(code, s), RetryAfter: retryAfter(header), Err: errors.New(text)}
}

func codeText(code int, reason metav1.StatusReason) string {
	if reason == "" {
		return strings.TrimSpace(strconv.Itoa(code) + " " + http.StatusText(code))
	}
	return strconv.Itoa(code) + " " + string(reason)
}

func reasonOf(code int, s metav1.Status) Reason {
	switch code {
	case http.StatusUnauthorized:
		return Unauthorized
	case http.StatusForbidden:
		if hasCause(s, "NamespaceTerminating") {
			return NoNamespace
		}
		return Forbidden
	case http.StatusNotFound:
		if s.Details != nil && s.Details.Kind == "namespaces" {
			return NoNamespace
		}
		return NotServed
	case http.StatusMethodNotAllowed:
		return NotServed
	case http.StatusConflict:
		return conflictOf(s)
	case http.StatusUnprocessableEntity:
		if otherUID(s) {
			return Gone
		}
		return Invalid
	case http.StatusGone:
		return expired
	case http.StatusTooManyRequests:
		return Throttled
	}
	switch {
	case code == http.StatusInternalServerError && misshapen(s.Message):
		return Invalid
	case code >= 500:
		return Unavailable
	}
	return Invalid
}

// misshapen reports whether a server's "internal error" is about a manifest
// that does not fit its kind: an unknown field, or a value of another type.
func misshapen(message string) bool {
	return strings.HasPrefix(message, "failed to create typed patch object") ||
		strings.HasPrefix(message, "failed to convert new object")
}

// conflictOf tells the four things apart for which a server answers 409.
func conflictOf(s metav1.Status) Reason {
	switch {
	case hasCause(s, metav1.CauseTypeFieldManagerConflict):
		return Foreign
	case strings.Contains(s.Message, "UID in the precondition"), strings.Contains(s.Message, "UID in precondition"),
		strings.Contains(s.Message, "uid mismatch"):
		return Gone
	}
	return Conflict
}

// otherUID reports whether the UID that we named is not the object's.
func otherUID(s metav1.Status) bool {
	return s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Field == "metadata.uid"
	})
}

func hasCause(s metav1.Status, t metav1.CauseType) bool {
	if s.Details == nil {
		return false
	}
	for _, c := range s.Details.Causes {
		if c.Type == t {
			return true
		}
	}
	return false
}

// absent reports whether the server says that the very object is not there.
func absent(a answer, ref Ref) bool {
	var s metav1.Status
	return a.status == http.StatusNotFound &&
		json.Unmarshal(a.body, &s) == nil && s.Kind == "Status" &&
		s.Reason == metav1.StatusReasonNotFound &&
		s.Details != nil && s.Details.Name == ref.Name
}

func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds <= 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, longestWait)
}

func notKubernetes(code int) *Error {
	return &Error{Reason: Unreachable, Err: fmt.Errorf("the answer (%s) is not a Kubernetes API's", codeText(code, ""))}
}

// unreachable says why there is no answer in words that stay the same from
// one attempt to the next: without the request and our own port.
func unreachable(err error) *Error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &Error{Reason: Unreachable, Err: fmt.Errorf("no answer within %s", requestTimeout), silent: true}
	}
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	if c := (*tls.CertificateVerificationError)(nil); errors.As(err, &c) {
		return &Error{Reason: Unreachable, Err: uncertified(c)}
	}
	if o := (*net.OpError)(nil); errors.As(err, &o) && o.Addr != nil {
		err = fmt.Errorf("%s %s: %w", o.Op, o.Addr, o.Err)
	}
	return &Error{Reason: Unreachable, Err: err, silent: true}
}

// uncertified says why a certificate is not accepted, without the time of day.
func uncertified(err *tls.CertificateVerificationError) error {
	c := x509.CertificateInvalidError{}
	if !errors.As(err, &c) || c.Reason != x509.Expired || c.Cert == nil {
		return err
	}
	return fmt.Errorf("its certificate is valid from %s to %s, and by our clock that is not now",
		c.Cert.NotBefore.UTC().Format(time.RFC3339), c.Cert.NotAfter.UTC().Format(time.RFC3339))
}
