// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
)

// Proxy is an HTTP proxy. An https server is reached through it as usual, and an ssh
// server by CONNECT.
type Proxy struct {
	Address            string // http://host:port or https://host:port
	Username, Password string
}

// Check reports what is wrong with the address.
func (p *Proxy) Check() error {
	_, err := p.url()
	return err
}

// url is the address with the credentials. No error quotes either.
func (p *Proxy) url() (*url.URL, error) {
	u, err := url.Parse(p.Address)
	if err != nil {
		return nil, errors.New("the proxy's address cannot be parsed; use http://host:port")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, errors.New("the proxy's address must be http://host:port or https://host:port")
	}

	if p.Username != "" {
		u.User = url.UserPassword(p.Username, p.Password)
	}
	return u, nil
}

// proxyOf is what http.Transport asks for the proxy of a request.
func (a *Auth) proxyOf() (func(*http.Request) (*url.URL, error), error) {
	if a.Proxy == nil {
		return http.ProxyFromEnvironment, nil
	}
	u, err := a.Proxy.url()
	if err != nil {
		return nil, err
	}
	return http.ProxyURL(u), nil
}

// dialThrough connects to address by way of a proxy.
func (p *Proxy) dialThrough(ctx context.Context, address string) (net.Conn, error) {
	u, err := p.url()
	if err != nil {
		return nil, &fault{ErrAuthentication, err}
	}

	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	conn, err := dialServer(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	plain := conn
	stop := context.AfterFunc(ctx, func() { _ = plain.Close() })
	defer stop()

	if u.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12})
	}
	tunnel, err := connect(conn, u.User, address)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("%s: %w", u.Host, err)
	}
	return tunnel, nil
}

// connect asks a proxy for a tunnel.
func connect(conn net.Conn, user *url.Userinfo, address string) (net.Conn, error) {
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{"User-Agent": {"fairlead"}}}
	if user != nil {
		password, _ := user.Password()
		basic := base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
		req.Header.Set("Proxy-Authorization", "Basic "+basic)
	}
	if err := req.Write(conn); err != nil {
		return nil, err
	}

	// The ssh server speaks first: what it says may come right behind the answer.
	limited := &io.LimitedReader{R: conn, N: maxProxyAnswer}
	from := bufio.NewReader(limited)
	resp, err := http.ReadResponse(from, req)
	if err != nil {
		return nil, &fault{ErrUnreachable, fmt.Errorf("its answer to CONNECT is not HTTP: %w", err)}
	}
	_ = resp.Body.Close() // it has none: what follows is the tunnel's

	limited.N = math.MaxInt64
	return &tunnelConn{conn, from}, proxyFault(resp.StatusCode)
}

// proxyFault is what an answer to CONNECT means, nil if there is a tunnel.
func proxyFault(code int) error {
	switch code {
	case http.StatusOK:
		return nil
	case http.StatusProxyAuthRequired:
		return &fault{ErrAuthentication, errors.New("the proxy rejects the credentials for it (407)")}
	}
	return &fault{ErrUnreachable, fmt.Errorf("the proxy does not connect us (%d)", code)}
}

// maxProxyAnswer limits the header of an answer.
const maxProxyAnswer = 64 << 10

// tunnelConn is a connection of which something was read already.
type tunnelConn struct {
	net.Conn
	from *bufio.Reader
}

// Read implements io.Reader.
func (c *tunnelConn) Read(p []byte) (int, error) { return c.from.Read(p) }
