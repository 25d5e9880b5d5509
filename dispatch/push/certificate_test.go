// SPDX-License-Identifier: Apache-2.0

package push_test

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
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/object"
)

// F36: where one of two clocks is wrong, a certificate is not valid. It is said in
// words that stay the same, or it would be told anew with every attempt.
func TestCertificateOfAnotherTime(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2038, 1, 19, 3, 14, 8, 0, time.UTC)
	if time.Now().After(at) {
		at = at.AddDate(1000, 0, 0)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: at, NotAfter: at.AddDate(1, 0, 0),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(start(t, "eu-1"))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	cfg := &rest.Config{Host: s.URL}
	cfg.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	m, err := push.New(cfg, push.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Get(context.Background(), member.RefTo(object.ID{Kind: "ConfigMap", Namespace: "default", Name: "a"}, "v1"))
	want := ": its certificate is valid from " + at.Format(time.RFC3339) + " to " + at.AddDate(1, 0, 0).Format(time.RFC3339) + ", and by our clock that is not now"
	if err == nil || err.Error() != want {
		t.Errorf("it reads %v, want %s", err, want)
	}
}
