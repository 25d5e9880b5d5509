// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"net"
	"time"
)

// maxSilence is how long a server may send nothing while something is read from it.
// A server that prepares a large pack says so every few seconds.
var maxSilence = 2 * time.Minute

// maxFetch is how long a fetch may take in all, however steadily the server sends.
const maxFetch = time.Hour

// dialServer connects to a server, and gives up on one that falls silent in the
// middle of an answer: nothing else would ever look at the repository again.
func dialServer(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &patientConn{conn}, nil
}

// patientConn fails a read or a write that does not move for too long.
type patientConn struct{ net.Conn }

// Read implements io.Reader.
func (c *patientConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(maxSilence)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// Write implements io.Writer.
func (c *patientConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(maxSilence)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
