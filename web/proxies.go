// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the networks of the proxies in front of a page.
type Proxies []netip.Prefix

// ParseProxies reads addresses and networks, such as 10.0.0.7 or 10.0.0.0/8.
func ParseProxies(texts []string) (p Proxies, err error) {
	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if addr, bad := netip.ParseAddr(text); bad == nil {
			network, err = addr.Prefix(addr.BitLen())
		}
		if err != nil {
			return nil, fmt.Errorf("%q is neither an address nor a network such as 10.0.0.0/8", text)
		}
		p = append(p, network.Masked())
	}
	return p, nil
}

// Viewer is the address that a request comes from: that of the connection, or if that is a
// proxy's, the last one in X-Forwarded-For that is not. What stands before that somebody
// else has written, who may say anything.
func (p Proxies) Viewer(r *http.Request) string {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	viewer := at.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !p.has(viewer) {
			break
		}
		before, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		viewer = before.Unmap()
	}
	return viewer.String()
}

func (p Proxies) has(addr netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(addr) })
}
