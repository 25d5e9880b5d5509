// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// shutdownTime is how long deliveries that are being read may take when the server ends.
const shutdownTime = 5 * time.Second

// Server is one that a slow or talkative client cannot occupy for long.
func Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      20 * time.Second,
		IdleTimeout:       30 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          log.New(io.Discard, "", 0), // it quotes what strangers send
	}
}

// Serve answers on a listener until ctx is done.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	s := Server(h)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()

	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}

	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	err := s.Shutdown(closing)
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
