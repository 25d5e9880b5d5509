// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/fairlead/fairlead/source"
)

// F36: the error for a server whose certificate is not valid now has the same
// words in every round.
func TestCertificateOfAnotherTime(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<30, 0),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}

	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()

	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	_, err = source.Clone(context.Background(), filepath.Join(t.TempDir(), "mirror"), s.URL+"/repo.git", source.Auth{CA: ca})
	want := s.URL + "/repo.git: its certificate is valid from 1970-01-01T00:00:00Z to 2004-01-10T13:37:04Z, which is not now by the local clock"
	if err == nil || err.Error() != want {
		t.Errorf("it reads %v\nwant     %s", err, want)
	}
}
