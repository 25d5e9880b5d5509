// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const viewers = 200

// BenchmarkViewers is 200 browsers that have the first page of 100 clusters with 300
// templates open. First nothing happens for ten seconds; then somebody pushes, all of
// them are told, and each asks for the page again. Both ends are in this process.
func BenchmarkViewers(b *testing.B) {
	g := benchFleet(b, 100, 300, 100)
	s := open(b, g.Dir)
	s.follow(g)
	server := httptest.NewServer(s)
	b.Cleanup(server.Close)
	b.Cleanup(server.CloseClientConnections)

	for b.Loop() {
		var all sync.WaitGroup
		told := make(chan struct{}, viewers)
		ctx, cancel := context.WithCancel(b.Context())
		for i := range viewers {
			ready := make(chan struct{})
			all.Go(func() { view(ctx, i, server.URL, ready, told) })
			<-ready
		}
		idle, began := cpuTime(), time.Now()
		time.Sleep(10 * time.Second)
		b.ReportMetric((cpuTime()-idle).Seconds()/time.Since(began).Seconds()*100, "%-of-a-core-idle")

		g.Commit("web-7 3.0.0", map[string]string{benchFile(7): benchTemplate(7, "3.0.0")})
		busy, pushed := cpuTime(), time.Now()
		s.Nudge()
		var waits []time.Duration
		var fetches sync.Mutex
		var asked sync.WaitGroup
		for range viewers {
			<-told
			asked.Go(func() {
				from := time.Now()
				fetch(b, server.URL+"/")
				fetches.Lock()
				defer fetches.Unlock()
				waits = append(waits, time.Since(from))
			})
		}
		b.ReportMetric(time.Since(pushed).Seconds()*1000, "ms-all-told")
		asked.Wait()
		slices.Sort(waits)
		b.ReportMetric(float64(waits[viewers*95/100].Milliseconds()), "ms-p95-page-at-once")
		b.ReportMetric((cpuTime() - busy).Seconds(), "cpu-s-push")
		cancel()
		all.Wait()
	}
}

// view holds a stream, and tells of changes. It comes from one of some addresses, as one
// alone may not have so many.
func view(ctx context.Context, i int, url string, ready, told chan<- struct{}) {
	opened := sync.OnceFunc(func() { close(ready) })
	defer opened() // or nobody would go on
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%10))}}
	transport := http.Transport{DialContext: from.DialContext}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/events", nil)
	if err != nil {
		return
	}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		switch lines.Text() {
		case "event: ready":
			opened()
		case "event: changed", "event: resync":
			told <- struct{}{}
		}
	}
}

// fetch reads a page as browsers take it.
func fetch(b *testing.B, url string) {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		b.Error(err)
		return
	}
	r.Header.Set("Accept-Encoding", "gzip")
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.Error(err)
		return
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(answer.Header.Get("Content-Encoding"), "gzip") {
		b.Errorf("%s: %s, %v", url, answer.Status, err)
	}
}

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // of ourselves always works
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
