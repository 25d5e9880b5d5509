// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"net"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// silence says after which time without a word a connection is given up, so
// that a member that answers again is not kept waiting by requests that were
// lost. It is the connection that is asked, not the request: what a member
// takes long over is waited for as long as the member is heard.
type silence struct {
	// dial is how long a connection may take to come about, and how long the
	// handshake after it. A name server that does not answer has its share of it.
	dial time.Duration
	// ping is how long nothing may be heard on a connection before it is asked
	// for a sign of life, and pong how long that may take. It queues behind what
	// we are sending, so a slow line needs time.
	ping, pong time.Duration
}

var usualSilence = silence{dial: 10 * time.Second, ping: 5 * time.Second, pong: 10 * time.Second}

func (s silence) dialer() *net.Dialer {
	return &net.Dialer{
		Timeout:         s.dial,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: s.ping, Interval: s.ping, Count: 3},
	}
}

// listen sets up a transport that is the member's own and was not used. What
// speaks HTTP/1 has no other sign of life than those of TCP.
func (s silence) listen(t http.RoundTripper, all *sockets) {
	switch t := t.(type) {
	case *http.Transport:
		all.know(t)
		t.TLSHandshakeTimeout = s.dial
		t.HTTP2 = &http.HTTP2Config{SendPingTimeout: s.ping, PingTimeout: s.pong}
	case utilnet.RoundTripperWrapper:
		s.listen(t.WrappedRoundTripper(), all)
	}
}
