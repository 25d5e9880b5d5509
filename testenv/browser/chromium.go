// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// programs are what Chromium is called.
var programs = []string{"chromium", "chromium-browser", "google-chrome"}

// chromium is the one of this process.
var chromium struct {
	sync.Mutex
	started context.Context
	end     context.CancelFunc
}

// Main runs the tests of a package and ends the Chromium that they started.
func Main(m interface{ Run() int }) int {
	defer stop()
	return m.Run()
}

// Require skips a test where there is no Chromium; in CI the test fails.
func Require(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("left out: -short starts no Chromium")
	}
	_, err := find()
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatal(err)
	default:
		t.Skipf("left out: %v", err)
	}
}

// find returns the path of Chromium. CHROMIUM names another one.
func find() (string, error) {
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path, nil
	}
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no Chromium: 'apt-get install chromium' installs it on Debian, or CHROMIUM names a program")
}

// start returns the context of the Chromium of this process, which is started if it is
// not.
func start(t testing.TB) context.Context {
	t.Helper()
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.started != nil {
		return chromium.started
	}

	path, err := find()
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.NoSandbox, // tests run as root in containers, and visit nobody but us
		chromedp.DisableGPU,
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"),
		chromedp.Flag("force-device-scale-factor", "1"),
		chromedp.Flag("font-render-hinting", "none"),
	)
	allocated, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	started, endBrowser := chromedp.NewContext(allocated)
	if err := chromedp.Do(started); err != nil {
		endBrowser()
		endAllocator()
		t.Fatalf("%s does not start: %v", path, err)
	}
	chromium.started = started
	chromium.end = func() {
		_ = chromedp.Cancel(started) // it ends in any case with what follows
		endBrowser()
		endAllocator()
	}
	return started
}

// stop ends Chromium and removes its files.
func stop() {
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.end != nil {
		chromium.end()
	}
	chromium.started, chromium.end = nil, nil
}
