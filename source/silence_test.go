// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// A06: a server that falls silent in the middle of an answer, wherever that is, ends
// the fetch, and the next one is as good as the first.
func TestServerFallsSilent(t *testing.T) {
	t.Cleanup(source.SetMaxSilence(300 * time.Millisecond))
	g := sourcetest.New(t)
	g.Commit("one", map[string]string{"a": "1"})
	good := serve(t, g.Bare())

	for name, silent := range map[string]http.HandlerFunc{
		"no headers": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"in the list of refs": func(w http.ResponseWriter, r *http.Request) {
			begin(w, "application/x-git-upload-pack-advertisement", "001e# service=git-upload-pack\n")
			<-r.Context().Done()
		},
		"in the pack": func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/git-upload-pack") {
				begin(w, "application/x-git-upload-pack-result", "0008NAK\n")
				<-r.Context().Done()
				return
			}
			good.Config.Handler.ServeHTTP(w, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewTLSServer(silent)
			t.Cleanup(s.Close)
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()

			dir := filepath.Join(t.TempDir(), "mirror")
			auth := source.Auth{Username: "ada", Password: "s3cret", CA: ca}
			_, err := source.Clone(ctx, dir, s.URL+"/"+filepath.Base(good.dir), auth)
			if err == nil || ctx.Err() != nil {
				t.Fatalf("got %v, %v", err, ctx.Err())
			}
			if _, err := source.Clone(ctx, dir, good.address(), good.basic()); err != nil {
				t.Errorf("from a server that answers: %v", err)
			}
		})
	}
}

// A06: the same over ssh, where even the greeting may not come.
func TestServerNeverGreets(t *testing.T) {
	t.Cleanup(source.SetMaxSilence(300 * time.Millisecond))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
		}
	}()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, identity := newKey(t)
	hostKey, _ := newKey(t)
	known := []byte(knownhosts.Line([]string{knownhosts.Normalize(l.Addr().String())}, hostKey.PublicKey()) + "\n")
	_, err = source.Clone(ctx, filepath.Join(t.TempDir(), "m"), "ssh://git@"+l.Addr().String()+"/repo.git", source.Auth{Identity: identity, KnownHosts: known})
	if err == nil || ctx.Err() != nil {
		t.Fatalf("got %v, %v", err, ctx.Err())
	}
}

func begin(w http.ResponseWriter, kind, text string) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write([]byte(text))
	w.(http.Flusher).Flush()
}
