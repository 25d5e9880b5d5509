// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// faults are what stands between a client and the server.
type faults struct {
	mu        sync.Mutex
	latency   time.Duration
	partition bool
	fail      func(*http.Request) (int, bool)
	retry     time.Duration
}

// SetLatency delays every answer.
func (s *Server) SetLatency(d time.Duration) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.latency = d
}

// Fail has requests answered with an HTTP status instead, when f says so. A
// nil f ends it.
func (s *Server) Fail(f func(*http.Request) (status int, ok bool)) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.fail = f
}

// RetryAfter is what failures ask for, in whole seconds.
func (s *Server) RetryAfter(d time.Duration) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.retry = d
}

// Partition has connections end without an answer, also those of requests
// under way, whose writes are done.
func (s *Server) Partition(on bool) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.partition = on
}

func (f *faults) partitioned() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.partition
}

// stand answers instead of the server when it is to fail.
func (f *faults) stand(w http.ResponseWriter, r *http.Request) bool {
	f.mu.Lock()
	latency, fail, retry := f.latency, f.fail, f.retry
	f.mu.Unlock()
	if latency > 0 {
		select {
		case <-time.After(latency):
		case <-r.Context().Done():
		}
	}
	if fail == nil {
		return false
	}
	code, ok := fail(r)
	if !ok {
		return false
	}
	if retry > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(int(retry.Seconds())))
	}
	send(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Message:  fmt.Sprintf("injected: %d %s", code, http.StatusText(code)),
		Code:     int32(code),
	})
	return true
}
