// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestPositionsFromAServer(t *testing.T) {
	defer func(was int64) { maxPositions = was }(maxPositions)
	maxPositions = 100
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/status":
			_, _ = w.Write([]byte(`{"kind": "Matrix"}`))
		case "/large":
			_, _ = w.Write([]byte(`{"kind": "Matrix"}` + strings.Repeat(" ", 100)))
		case "/moved":
			http.Redirect(w, r, "/status", http.StatusFound)
		case "/away":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()

	for path, want := range map[string]string{
		"/status": "", "/moved": "", "/large": "more than 100 bytes", "/none": "404 Not Found", "/away": "unsupported protocol scheme",
	} {
		r, err := readPositions(context.Background(), strings.Replace(s.URL, "://", "://user:secret@", 1)+path)
		switch {
		case want == "" && (err != nil || r == nil):
			t.Errorf("%s: %v", path, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret")):
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}
