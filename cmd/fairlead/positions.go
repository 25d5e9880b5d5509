// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/fairlead/fairlead/look/plan"
)

// positionsTimeout is how long a server of positions may take.
const positionsTimeout = 30 * time.Second

// maxPositions is how much it may send: a few hundred bytes for each object and cluster.
var maxPositions int64 = 256 << 20

// readPositions reads the value of --positions; nil if there is none.
func readPositions(ctx context.Context, from string) (*plan.Reported, error) {
	if from == "" {
		return nil, nil
	}
	read := os.ReadFile
	if strings.Contains(from, "://") {
		read = func(url string) ([]byte, error) { return download(ctx, url) }
	}
	raw, err := read(from)
	if err != nil {
		return nil, fmt.Errorf("--positions: %w", err)
	}
	reported, err := plan.ReadPositions(raw)
	if err != nil {
		return nil, fmt.Errorf("--positions: %w", err)
	}
	return reported, nil
}

// download reads a URL up to a limit. The client knows http and https only.
func download(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, positionsTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()

	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", req.URL.Redacted(), resp.Status)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxPositions+1))
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", req.URL.Redacted(), err)
	}
	if int64(len(raw)) > maxPositions {
		return nil, fmt.Errorf("GET %s: more than %d bytes", req.URL.Redacted(), maxPositions)
	}
	return raw, nil
}
