// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/fairlead/fairlead/source"
)

// statusError is an error with the status of the answer that tells it.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return e.text }

// malformed is the error of a request that cannot be understood.
func malformed(format string, args ...any) error {
	return &statusError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// unknown is the error of a request for something that there is not.
func unknown(format string, args ...any) error {
	return &statusError{http.StatusNotFound, fmt.Sprintf(format, args...)}
}

// errBeginning is the error of a request before the first fold.
var errBeginning = errors.New("the history is not folded yet")

// codeOf returns the status of the answer that tells an error.
func codeOf(err error) int {
	var status *statusError
	switch {
	case errors.As(err, &status):
		return status.code
	case errors.Is(err, source.ErrUnknownRevision):
		return http.StatusNotFound
	case errors.Is(err, errBusy):
		return http.StatusTooManyRequests
	case errors.Is(err, errBeginning), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// retryAfter is how many seconds a client should wait before it tries again; 0 if that is
// no use.
func retryAfter(code int) int {
	switch code {
	case http.StatusTooManyRequests:
		return 5
	case http.StatusServiceUnavailable:
		return 1
	}
	return 0
}
