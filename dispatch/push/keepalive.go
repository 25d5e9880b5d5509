// SPDX-License-Identifier: Apache-2.0

package push

import (
	"cmp"
	"net"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Keepalive says when a silent connection is given up, so that lost requests do
// not delay a member that answers again. It checks the connection, not the
// request: a slow answer is waited for as long as the connection is alive. The
// zero value has the defaults.
type Keepalive struct {
	// Dial is the time for a connection, and again for its TLS handshake. A name
	// server that does not answer takes its share of it. Default 10s.
	Dial time.Duration
	// Ping is how long a connection may be silent before it is pinged, default 5s,
	// and Pong how long the answer may take, default 10s. The ping queues behind
	// what we are sending, so a slow line needs time.
	Ping, Pong time.Duration
}

func (k Keepalive) withDefaults() Keepalive {
	k.Dial = cmp.Or(k.Dial, 10*time.Second)
	k.Ping = cmp.Or(k.Ping, 5*time.Second)
	k.Pong = cmp.Or(k.Pong, 10*time.Second)
	return k
}

func (k Keepalive) dialer() *net.Dialer {
	return &net.Dialer{
		Timeout:         k.Dial,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: k.Ping, Interval: k.Ping, Count: 3},
	}
}

// listen sets up a transport that is the member's own and was not used. What
// speaks HTTP/1 has no other sign of life than those of TCP.
func (k Keepalive) listen(t http.RoundTripper, all *ConnLimit) {
	switch t := t.(type) {
	case *http.Transport:
		all.know(t)
		t.TLSHandshakeTimeout = k.Dial
		t.HTTP2 = &http.HTTP2Config{SendPingTimeout: k.Ping, PingTimeout: k.Pong}
	case utilnet.RoundTripperWrapper:
		k.listen(t.WrappedRoundTripper(), all)
	}
}
