// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
)

// What went wrong with a remote. An error of Clone, Fetch, Push or Branches wraps at
// most one of them.
var (
	// ErrAuthentication says that the credentials are missing, unusable or rejected.
	ErrAuthentication = errors.New("authentication failed")
	// ErrCertificate says that the server, or the proxy before it, is not who it should be:
	// its certificate or host key is not trusted.
	ErrCertificate = errors.New("the server is not trusted")
	// ErrUnreachable says that there is no connection, or no answer in time.
	ErrUnreachable = errors.New("unreachable")
)

// fault is an error with its own text that matches one of the above.
type fault struct {
	kind error
	error
}

func (f *fault) Unwrap() error        { return f.error }
func (f *fault) Is(target error) bool { return target == f.kind }

// redacted is an error of a remote without secrets: an error of a transport may
// quote the address it was given.
func (r *remote) redacted(err error) error {
	if err == nil {
		return nil
	}

	kind := kindOf(err)
	invalid := x509.CertificateInvalidError{}
	switch {
	case errors.Is(err, transport.ErrAuthenticationRequired):
		err = errors.New("authentication required, or repository not found")
	case errors.Is(err, transport.ErrAuthorizationFailed):
		err = errors.New("the server rejected the credentials")
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		err = errors.New("the repository is empty")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil:
		// The library's text contains the time of day, which is new each time.
		err = fmt.Errorf("its certificate is valid from %s to %s, which is not now by the local clock",
			invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
	}

	err = fmt.Errorf("%s: %w", r, err)
	if kind == nil || errors.Is(err, kind) {
		return err
	}
	return &fault{kind, err}
}

// kindOf tells which of the errors above an error is; nil if none.
func kindOf(err error) error {
	var mine *fault
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var op *net.OpError
	var name *net.DNSError
	switch {
	case errors.As(err, &mine):
		return mine.kind
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed):
		return ErrAuthentication
	case errors.As(err, &verification), errors.As(err, &record):
		return ErrCertificate
	case errors.As(err, &op) && op.Op == "remote error" && strings.Contains(err.Error(), "certificate"):
		return ErrAuthentication // the server's alert about our certificate
	case errors.As(err, &op), errors.As(err, &name),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return ErrUnreachable
	}

	return nil
}
