// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/reconcile/sharing"
)

// A loop in a process of its own, whose processor time and memory are ours
// alone: members, API servers and the benchmark are elsewhere. It does what a
// line on its standard input says, and answers with an account.

// envMeasured has the options of the measured child, as JSON.
const envMeasured = "FAIRLEAD_TEST_MEASURED"

type measuredOptions struct {
	Repo, State, Kubeconfig string
	Path                    string // of the fleet in Repo; "" is its root
	Watch                   bool
	// Mute has watches begin and say nothing: what the members hold is made up.
	Mute bool
	// Interval is the loop's; 0 is the usual one.
	Interval time.Duration
	// Faults is how many of the requests fail, until the order "calm".
	Faults float64
	// Hub is where the Leases are of the replicas that share the members; Pod is this one.
	Hub, Pod string
}

// account is what one order took.
type account struct {
	Seconds, CPU  float64
	AllCPU        float64        // of the process until now
	Requests      map[string]int // by what they are
	RSS, Peak     uint64         // bytes; the peak is of the process until now
	Anon          uint64         // of RSS what is no file
	Heap          uint64
	Renders       int
	Bindings      int
	Goroutines    int
	Err           string
	TotalRequests int // without watches
}

// measured is a measured child.
type measured struct {
	b   *testing.B
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner

	ended bool
}

// measure starts a child. It has not opened anything before its first order.
func measure(b *testing.B, opt measuredOptions) *measured {
	b.Helper()
	text, err := json.Marshal(opt)
	if err != nil {
		b.Fatal(err)
	}
	m := &measured{b: b, cmd: exec.Command(os.Args[0])}
	m.cmd.Env = append(os.Environ(), envMeasured+"="+string(text))
	m.cmd.Stderr = os.Stderr
	if m.in, err = m.cmd.StdinPipe(); err != nil {
		b.Fatal(err)
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	m.out = bufio.NewScanner(out)
	m.out.Buffer(nil, 1<<20)
	if err := m.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(m.end)
	return m
}

func (m *measured) end() {
	if m.ended {
		return
	}
	m.ended = true
	m.in.Close()
	if err := m.cmd.Wait(); err != nil {
		m.b.Errorf("the measured process: %v", err)
	}
}

// order has the child do something: "open", "once", "round", "run 10s", "rest 10s", "collect"
// its garbage, "calm" the faults, or "join" the other replicas until it ends.
func (m *measured) order(what string) account {
	m.b.Helper()
	fmt.Fprintln(m.in, what)
	if !m.out.Scan() {
		m.b.Fatalf("%s: the measured process ended", what)
	}
	var a account
	if err := json.Unmarshal(m.out.Bytes(), &a); err != nil || a.Err != "" {
		m.b.Fatalf("%s: %v %s", what, err, a.Err)
	}
	return a
}

func measuredChild(text string) int {
	// The collector is as calm as the program has it.
	calm := make([]byte, 32<<20)
	defer runtime.KeepAlive(calm)
	var opt measuredOptions
	if err := json.Unmarshal([]byte(text), &opt); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	c := &measuredLoop{opt: opt, requests: map[string]int{}}
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		if err := json.NewEncoder(os.Stdout).Encode(c.account(orders.Text())); err != nil {
			return 1
		}
	}
	if c.loop != nil {
		if c.leave != nil {
			c.leave()
		}
		if err := c.loop.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

type measuredLoop struct {
	opt      measuredOptions
	loop     *reconcile.Loop
	contexts *push.Contexts
	calm     atomic.Bool
	replica  *sharing.Replica // nil without Hub
	wake     chan struct{}
	leave    func() // nil before "join"

	mu       sync.Mutex
	requests map[string]int
}

func (c *measuredLoop) account(order string) account {
	renders, cpu, began := c.renders(), processorTime(), time.Now()
	err := c.obey(order)
	a := account{Seconds: time.Since(began).Seconds(), CPU: processorTime() - cpu, AllCPU: processorTime(), Renders: c.renders() - renders, Requests: c.taken()}
	for what, n := range a.Requests {
		if what != "WATCH" {
			a.TotalRequests += n
		}
	}
	a.RSS, a.Anon, a.Peak = memory("VmRSS"), memory("RssAnon"), memory("VmHWM")
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	a.Heap, a.Goroutines = stats.HeapAlloc, runtime.NumGoroutine()
	if err != nil {
		a.Err = err.Error()
	}
	return a
}

func (c *measuredLoop) obey(order string) (err error) {
	ctx := context.Background()
	switch verb, arg, _ := strings.Cut(order, " "); verb {
	case "open":
		if c.contexts, err = push.LoadContexts(c.opt.Kubeconfig); err != nil {
			return err
		}
		options := reconcile.Options{
			Repo: c.opt.Repo, Ref: "main", Path: cmp.Or(c.opt.Path, "."), StateDir: c.opt.State, Watch: c.opt.Watch, Timeout: 10 * time.Minute, Interval: c.opt.Interval,
			Report: func(reconcile.Event) {}, Members: c.member,
		}
		if c.opt.Hub != "" {
			c.share(&options)
		}
		c.loop, err = reconcile.Open(ctx, options)
		return err
	case "join":
		ctx, cancel := context.WithCancel(ctx)
		var ended sync.WaitGroup
		c.replica.Attach(c.loop)
		ended.Go(func() { _ = c.replica.Run(ctx) }) // it ends with the context
		ended.Go(func() { _ = c.loop.Run(ctx) })
		c.leave = func() { cancel(); ended.Wait() }
		return nil
	case "once":
		return c.loop.Once(ctx)
	case "round":
		_, err := c.loop.Round(ctx)
		return err
	case "run":
		lasting, err := time.ParseDuration(arg)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, lasting)
		defer cancel()
		return c.loop.Run(ctx)
	case "rest":
		lasting, err := time.ParseDuration(arg)
		time.Sleep(lasting)
		return err
	case "collect":
		runtime.GC()
		runtime.GC() // what the first has finalized
		return nil
	case "calm":
		c.calm.Store(true)
		return nil
	}
	return fmt.Errorf("%q is no order", order)
}

// share has the loop share its members with those of other processes.
func (c *measuredLoop) share(options *reconcile.Options) {
	hub := &rest.Config{Host: c.opt.Hub, QPS: -1}
	c.wake = make(chan struct{}, 1)
	c.replica = sharing.New(sharing.Options{
		Leases: coordinationv1.NewForConfigOrDie(hub).Leases("default"), ConfigMaps: corev1.NewForConfigOrDie(hub).ConfigMaps("default"),
		Fleet: "acme", Pod: c.opt.Pod, Shards: 32, Failed: func(err error) { fmt.Fprintln(os.Stderr, err) },
		Changed: func() {
			select {
			case c.wake <- struct{}{}:
			default:
			}
		},
	})
	options.Shares, options.Wake = c.replica, c.wake
}

func (c *measuredLoop) renders() int {
	if c.loop == nil {
		return 0
	}
	return c.loop.Renders()
}

func (c *measuredLoop) member(cluster *fleet.Cluster) (member.Member, error) {
	config, err := c.contexts.For(cluster.Name)
	if err != nil {
		return nil, err
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			what := r.Method
			if r.URL.Query().Get("watch") == "true" {
				what = "WATCH"
			}
			c.mu.Lock()
			c.requests[what]++
			c.mu.Unlock()
			if what == "WATCH" && c.opt.Mute {
				silence, _ := io.Pipe()
				context.AfterFunc(r.Context(), func() { silence.Close() })
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: silence, Request: r}, nil
			}
			if c.opt.Faults > 0 && !c.calm.Load() && rand.Float64() < c.opt.Faults {
				return failed(r, next)
			}
			return next.RoundTrip(r)
		})
	})
	if c.replica != nil {
		return c.replica.Push(config, cluster)
	}
	return push.New(config, push.Options{})
}

// failed is a request that fails, one way or another.
func failed(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	switch rand.IntN(4) {
	case 0:
		return nil, syscall.ECONNRESET
	case 1:
		resp, err := next.RoundTrip(r)
		if err == nil {
			resp.Body.Close()
		}
		return nil, io.ErrUnexpectedEOF // it was done, and nobody has heard
	case 2:
		return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"1"}}, Body: http.NoBody, Request: r}, nil
	}
	return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

func (c *measuredLoop) taken() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.requests
	c.requests = map[string]int{}
	return taken
}

// processorTime is what this process has used, in seconds.
func processorTime() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}

// memory is a line of what Linux tells about this process, in bytes.
func memory(line string) uint64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(status, []byte(line+":"))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.ParseUint(string(fields[0]), 10, 64)
	return kib << 10
}

const mib = 1 << 20

// kubeconfig has a context for each member.
func kubeconfig(b *testing.B, configs map[string]*rest.Config) string {
	b.Helper()
	file := filepath.Join(b.TempDir(), "members.yaml")
	if err := push.WriteContexts(file, configs); err != nil {
		b.Fatal(err)
	}
	return file
}
