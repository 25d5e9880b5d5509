// SPDX-License-Identifier: Apache-2.0

package push

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

	"github.com/fairlead/fairlead/dispatch/member"
)

const (
	// expired is a list whose next page the server no longer has.
	expired member.Reason = "Expired"
	// longestWait caps what a member may ask for.
	longestWait = 5 * time.Minute
	// longestText caps what a member may say.
	longestText = 1024
)

// apiError is the error in an answer that is none of the expected ones. With
// secret the server's words are left out: they may quote what was sent.
func apiError(code int, header http.Header, body []byte, secret bool) *member.Error {
	var s metav1.Status
	if json.Unmarshal(body, &s) != nil || s.Kind != "Status" {
		if code == http.StatusNotFound {
			// The server has no such path, which says nothing about objects.
			return &member.Error{Reason: member.NotServed, Err: errors.New("404 Not Found")}
		}
		if code == http.StatusTooManyRequests || code == http.StatusUnauthorized {
			return &member.Error{Reason: reasonOf(code, s), RetryAfter: retryAfter(header), Err: errors.New(codeText(code, ""))}
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
		text += "; to change it anyway, give the object another name, or remove it and add it again once it is gone"
	}
	return &member.Error{Reason: reasonOf(code, s), RetryAfter: retryAfter(header), Err: errors.New(text)}
}

func codeText(code int, reason metav1.StatusReason) string {
	if reason == "" {
		return strings.TrimSpace(strconv.Itoa(code) + " " + http.StatusText(code))
	}
	return strconv.Itoa(code) + " " + string(reason)
}

func reasonOf(code int, s metav1.Status) member.Reason {
	switch code {
	case http.StatusUnauthorized:
		return member.Unauthorized
	case http.StatusForbidden:
		if hasCause(s, "NamespaceTerminating") {
			return member.NoNamespace
		}
		return member.Forbidden
	case http.StatusNotFound:
		if s.Details != nil && s.Details.Kind == "namespaces" {
			return member.NoNamespace
		}
		return member.NotServed
	case http.StatusMethodNotAllowed:
		return member.NotServed
	case http.StatusConflict:
		return conflictOf(s)
	case http.StatusUnprocessableEntity:
		if otherUID(s) {
			return member.Gone
		}
		return member.Invalid
	case http.StatusGone:
		return expired
	case http.StatusTooManyRequests:
		return member.Throttled
	}
	switch {
	case code == http.StatusInternalServerError && misshapen(s.Message):
		return member.Invalid
	case code >= 500:
		return member.Unavailable
	}
	return member.Invalid
}

// misshapen reports whether a server's "internal error" is about a manifest
// that does not fit its kind: an unknown field, or a value of another type.
func misshapen(message string) bool {
	return strings.HasPrefix(message, "failed to create typed patch object") ||
		strings.HasPrefix(message, "failed to convert new object")
}

// conflictOf tells the four things apart for which a server answers 409.
func conflictOf(s metav1.Status) member.Reason {
	switch {
	case hasCause(s, metav1.CauseTypeFieldManagerConflict):
		return member.Foreign
	case strings.Contains(s.Message, "UID in the precondition"), strings.Contains(s.Message, "UID in precondition"),
		strings.Contains(s.Message, "uid mismatch"):
		return member.Gone
	}
	return member.Conflict
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
func absent(a answer, ref member.Ref) bool {
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

func notKubernetes(code int) *member.Error {
	return &member.Error{Reason: member.Unreachable, Err: fmt.Errorf("the answer (%s) is not from a Kubernetes API", codeText(code, ""))}
}

// unreachable says why there is no answer in words that stay the same from
// one attempt to the next: without the request and our own port.
func unreachable(err error) *member.Error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &member.Error{Reason: member.Unreachable, Err: fmt.Errorf("no answer within %s", requestTimeout), Silent: true}
	}
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	if c := (*tls.CertificateVerificationError)(nil); errors.As(err, &c) {
		return &member.Error{Reason: member.Unreachable, Err: uncertified(c)}
	}
	if o := (*net.OpError)(nil); errors.As(err, &o) && o.Addr != nil {
		err = fmt.Errorf("%s %s: %w", o.Op, o.Addr, o.Err)
	}
	return &member.Error{Reason: member.Unreachable, Err: err, Silent: true}
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
