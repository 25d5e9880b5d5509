// SPDX-License-Identifier: Apache-2.0

package push

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
)

// inside are addresses that a member never has, beyond those that net/netip knows: there
// clouds serve the credentials of the machine.
var inside = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("168.63.129.16"),
}

var (
	// translated is how an IPv6-only network names an IPv4 address (RFC 6052).
	translated = netip.MustParsePrefix("64:ff9b::/96")
	// compatible is an obsolete way to do that.
	compatible = netip.MustParsePrefix("::/96")
)

// isInside reports whether an address leads to this machine, its link, or what a cloud
// serves there.
func isInside(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || slices.Contains(inside, ip) {
		return true
	}
	if translated.Contains(ip) || compatible.Contains(ip) {
		b := ip.As16()
		return isInside(netip.AddrFrom4([4]byte(b[12:])))
	}
	return false
}

// hostOf makes one form of each way to write a host.
func hostOf(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

// isOwnName reports whether a name is that of the API server in every cluster.
func isOwnName(host string) bool {
	return host == "kubernetes" || host == "kubernetes.default" || strings.HasPrefix(host, "kubernetes.default.svc")
}

// own is an address of the controller's API server. Without a port it is every port.
type own struct{ host, port string }

func (a Allow) own() (all []own) {
	for _, address := range a.Own {
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			port := u.Port()
			if port == "" && u.Scheme == "https" {
				port = "443"
			}
			all = append(all, own{hostOf(u.Hostname()), port})
			continue
		}
		if host, port, err := net.SplitHostPort(address); err == nil {
			all = append(all, own{hostOf(host), port})
			continue
		}
		all = append(all, own{host: hostOf(strings.Trim(address, "[]"))})
	}
	return all
}

// checkHost refuses a host that leads inside by its name.
func (a Allow) checkHost(host, port string) error {
	if a.Internal {
		return nil
	}
	host = hostOf(host)
	if ip, err := netip.ParseAddr(host); err == nil {
		return a.checkIP(ip, port)
	}

	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return a.refused(host, "leads to the controller itself")
	}
	ours := func(o own) bool { return o.host == host && (o.port == "" || o.port == port) }
	if isOwnName(host) || slices.ContainsFunc(a.own(), ours) {
		return a.refused(host, "is the controller's own API server")
	}
	return nil
}

func (a Allow) checkIP(ip netip.Addr, port string) error {
	if isInside(ip) {
		return a.refused(ip.String(), "leads inside")
	}
	for _, o := range a.own() {
		if mine, err := netip.ParseAddr(o.host); err == nil && mine.Unmap() == ip.Unmap() && (o.port == "" || o.port == port) {
			return a.refused(ip.String(), "is the controller's own API server")
		}
	}
	return nil
}

func (Allow) refused(host, why string) error {
	return fmt.Errorf("address %s %s; --allow-internal-members allows it", host, why)
}

// control checks each address at the moment of the connection: what a name meant when it
// was read it need not mean any more.
func (a Allow) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	if a.Internal {
		return nil
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %s cannot be checked", address)
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("address %s cannot be checked", address)
	}
	if err := a.checkIP(at.Addr(), port); err != nil {
		return err
	}

	for _, o := range a.own() {
		if _, err := netip.ParseAddr(o.host); err == nil || o.port != "" && o.port != port {
			continue
		}
		ips, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", o.host) // a name without addresses is nobody's
		if slices.ContainsFunc(ips, func(ip netip.Addr) bool { return ip.Unmap() == at.Addr().Unmap() }) {
			return a.refused(at.Addr().String(), "is the controller's own API server")
		}
	}
	return nil
}

// dial connects to a member whose address somebody else wrote.
func (a Allow) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := Keepalive{}.withDefaults().dialer()
	d.ControlContext = a.control
	return d.DialContext(ctx, network, address)
}
