// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"
)

// Serve answers on a listener until ctx is done, and ends the streams with it.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(ending) // what is left is cut off
	})
	defer stop()

	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// LocalOnly refuses requests for another host than this machine: the site that a browser
// has open may have a name that leads here, and would read the page as its own.
func LocalOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		ip := net.ParseIP(strings.Trim(host, "[]"))
		if host != "localhost" && !strings.HasSuffix(host, ".localhost") && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "this page is served to this machine alone: ask for localhost, or say --page-auth none", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
