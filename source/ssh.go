// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// sshSession runs git-upload-pack or git-receive-pack on a server. go-git has a
// client too, but it reads the user's ssh configuration and agent; a fleet is
// reached with the given credentials and nothing else.
type sshSession struct {
	client  *ssh.Client
	session *ssh.Session
	in      io.WriteCloser
	out     io.Reader
	errors  *tail
	pushes  bool
	stop    func() bool // stop closing the connection when the context ends
}

func dialSSH(ctx context.Context, r *remote, service string) (*sshSession, error) {
	if len(r.auth.Identity) == 0 {
		return nil, &fault{ErrAuthentication, errors.New("ssh requires an identity (a private key)")}
	}

	signer, err := parseIdentity(r.auth)
	if err != nil {
		return nil, &fault{ErrAuthentication, fmt.Errorf("ssh identity: %w", err)}
	}

	port := r.endpoint.Port
	if port == 0 {
		port = 22
	}

	address := net.JoinHostPort(strings.Trim(r.endpoint.Host, "[]"), strconv.Itoa(port))
	check, algorithms, err := hostKeys(r.auth.KnownHosts, address)
	if err != nil {
		return nil, err
	}

	conn, err := r.auth.dial(ctx, address)
	if err != nil {
		return nil, err
	}

	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	c, channels, requests, err := ssh.NewClientConn(conn, address, &ssh.ClientConfig{
		User:              r.endpoint.User,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback:   check,
		HostKeyAlgorithms: algorithms,
		Timeout:           dialTimeout,
	})

	if err != nil {
		stop()
		_ = conn.Close()
		return nil, handshakeFault(address, err)
	}

	s := &sshSession{client: ssh.NewClient(c, channels, requests), errors: &tail{}, pushes: service == "git-receive-pack", stop: stop}
	if err := s.start(service + " " + quote(r.endpoint.Path)); err != nil {
		return nil, errors.Join(err, s.Close())
	}

	return s, nil
}

// dial connects to an ssh server, through the proxy if there is one.
func (a *Auth) dial(ctx context.Context, address string) (net.Conn, error) {
	if a.Proxy != nil {
		return a.Proxy.dialThrough(ctx, address)
	}
	return dialServer(ctx, "tcp", address)
}

func parseIdentity(auth Auth) (ssh.Signer, error) {
	if len(auth.IdentityPassword) > 0 {
		return ssh.ParsePrivateKeyWithPassphrase(auth.Identity, auth.IdentityPassword)
	}
	return ssh.ParsePrivateKey(auth.Identity)
}

// quote makes one word for the remote shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// hostKeys checks a server's key against known_hosts, and returns the key types
// that are known for it: if asked for another type, the right server would look
// like a wrong one.
func hostKeys(known []byte, address string) (check ssh.HostKeyCallback, algorithms []string, err error) {
	if len(bytes.TrimSpace(known)) == 0 {
		return nil, nil, &fault{ErrCertificate, errors.New("known_hosts is empty; ssh requires the server's host key")}
	}

	// The parser only reads files.
	f, err := os.CreateTemp("", "known_hosts-*")
	if err != nil {
		return nil, nil, err
	}
	defer os.Remove(f.Name())

	_, err = f.Write(known)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, nil, err
	}

	if check, err = knownhosts.New(f.Name()); err != nil {
		return nil, nil, &fault{ErrCertificate, errors.New("known_hosts: " + strings.ReplaceAll(err.Error(), f.Name()+":", "line "))}
	}

	var mismatch *knownhosts.KeyError
	if err := check(address, &net.TCPAddr{}, noKey{}); errors.As(err, &mismatch) {
		for _, want := range mismatch.Want {
			if kind := want.Key.Type(); kind == ssh.KeyAlgoRSA {
				algorithms = append(algorithms, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
			} else {
				algorithms = append(algorithms, kind)
			}
		}
	}

	if len(algorithms) == 0 {
		return nil, nil, &fault{ErrCertificate, fmt.Errorf("host %s is not in known_hosts", address)}
	}

	return check, algorithms, nil
}

// noKey matches nothing, so that the error lists what would have matched.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return []byte("none") }
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("no key") }

// handshakeFault says what kind of failure a handshake's is.
func handshakeFault(address string, err error) error {
	var mismatch *knownhosts.KeyError
	var revoked *knownhosts.RevokedError
	switch {
	case errors.As(err, &mismatch):
		return &fault{ErrCertificate, fmt.Errorf("host key of %s does not match known_hosts", address)}
	case errors.As(err, &revoked):
		return &fault{ErrCertificate, fmt.Errorf("host key of %s is revoked in known_hosts", address)}
	case strings.Contains(err.Error(), "unable to authenticate"): // the library has no type for it
		return &fault{ErrAuthentication, err}
	}

	return err
}

func (s *sshSession) start(command string) (err error) {
	if s.session, err = s.client.NewSession(); err != nil {
		return err
	}

	s.session.Stderr = s.errors
	if s.in, err = s.session.StdinPipe(); err != nil {
		return err
	}
	if s.out, err = s.session.StdoutPipe(); err != nil {
		return err
	}

	return s.session.Start(command)
}

// AdvertisedReferencesContext reads the refs that the server sends first.
func (s *sshSession) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	refs := packp.NewAdvRefs()
	err := refs.Decode(s.out)
	switch {
	case errors.Is(err, packp.ErrEmptyAdvRefs) || err == nil && refs.IsEmpty() && !s.pushes:
		return nil, transport.ErrEmptyRemoteRepository
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		// The server ends without output: its stderr says why.
		_ = s.session.Wait()
		if said := s.errors.String(); said != "" {
			return nil, fmt.Errorf("the server says: %s", said)
		}
		return nil, err
	}

	transport.FilterUnsupportedCapabilities(refs.Capabilities)
	return refs, nil
}

// UploadPack requests a pack.
func (s *sshSession) UploadPack(_ context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	err := req.UploadRequest.Encode(s.in)
	if err == nil {
		err = req.UploadHaves.Encode(s.in, true)
	}
	if err == nil {
		err = pktline.NewEncoder(s.in).EncodeString("done\n")
	}
	if err == nil {
		err = s.in.Close()
	}
	if err != nil {
		return nil, err
	}

	response := packp.NewUploadPackResponse(req)
	return response, response.Decode(io.NopCloser(s.out))
}

// ReceivePack sends a pack and reads the server's report.
func (s *sshSession) ReceivePack(_ context.Context, req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	if err := errors.Join(req.Encode(s.in), s.in.Close()); err != nil {
		return nil, err
	}

	out := s.out
	if req.Capabilities.Supports(capability.Sideband64k) {
		d := sideband.NewDemuxer(sideband.Sideband64k, s.out)
		d.Progress = req.Progress
		out = d
	}

	report := packp.NewReportStatus()
	if err := report.Decode(out); err != nil {
		if said := s.errors.String(); said != "" {
			return nil, fmt.Errorf("the server says: %s", said)
		}
		return nil, err
	}

	return report, report.Error()
}

// Close ends the session. A server that gets no further request exits.
func (s *sshSession) Close() error {
	s.stop()
	if s.session != nil {
		_ = s.session.Close()
	}
	_ = s.client.Close()
	return nil
}

// tail keeps the end of a server's stderr.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	t.b = t.b[max(0, len(t.b)-1024):]
	return len(p), nil
}

func (t *tail) String() string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(t.b), "")), " ")
}
