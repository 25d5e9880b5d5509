// SPDX-License-Identifier: Apache-2.0

package stream_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead/fairlead/web/stream"
)

const viewers = 200

// BenchmarkIdle is 200 browsers that leave the page open while nothing happens. Only
// heartbeats cost anything: they come a thousand times as often here as they do, and the
// CPU of both ends is divided by that.
func BenchmarkIdle(b *testing.B) {
	const often = 1000
	heard := make(chan struct{}, viewers)
	_, memory := viewed(b, stream.Options{Heartbeat: 15 * time.Second / often}, heard)

	before := cpu(b)
	beats := 0
	for b.Loop() {
		for range 50 * viewers {
			<-heard
		}
		beats += 50
	}
	real := float64(beats) * 15 // seconds that so many heartbeats take
	b.ReportMetric((cpu(b)-before).Seconds()/real*100, "%-of-a-core")
	b.ReportMetric(memory, "KiB/viewer")
}

// BenchmarkChange is one change of 40 parts that 200 browsers are told; they read it.
func BenchmarkChange(b *testing.B) {
	heard := make(chan struct{}, viewers)
	hub, _ := viewed(b, stream.Options{Every: time.Nanosecond, Heartbeat: time.Hour}, heard)

	before := cpu(b)
	changes := 0
	for b.Loop() {
		parts := map[string]string{}
		for i := range 300 {
			parts[fmt.Sprintf("row-%d", i)] = fmt.Sprint(i < 40, changes)
		}
		changes++
		hub.Publish(stream.Snapshot{Version: fmt.Sprint(changes), Parts: parts})
		for range viewers {
			<-heard
		}
	}
	b.ReportMetric((cpu(b)-before).Seconds()*1000/float64(changes), "cpu-ms/change")
}

// viewed runs a hub with viewers over loopback. Each message that one of them gets is
// heard. kib is what a viewer takes in memory, both ends together.
func viewed(b *testing.B, o stream.Options, heard chan struct{}) (hub *stream.Hub, kib float64) {
	o.Limits = stream.NewLimits(viewers, viewers)
	hub = stream.New(o)
	go hub.Run(b.Context())
	server := httptest.NewServer(hub)
	b.Cleanup(server.Close)

	var connected sync.WaitGroup
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range viewers {
		connected.Add(1)
		go func() {
			request, _ := http.NewRequestWithContext(b.Context(), http.MethodGet, server.URL, nil)
			answer, err := http.DefaultTransport.RoundTrip(request)
			if err != nil {
				b.Error(err)
				connected.Done()
				return
			}
			defer answer.Body.Close()
			lines, first := bufio.NewReader(answer.Body), true
			for {
				line, err := lines.ReadString('\n')
				switch {
				case err != nil:
					return
				case line != "\n":
				case first:
					first = false
					connected.Done()
				default:
					heard <- struct{}{}
				}
			}
		}()
	}
	connected.Wait()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return hub, float64(after.HeapInuse+after.StackInuse-before.HeapInuse-before.StackInuse) / viewers / 1024
}

// cpu is what this process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
