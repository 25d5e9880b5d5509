// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"strings"
	"testing"

	"github.com/fairlead/fairlead/credentials"
)

func TestKubeconfig(t *testing.T) {
	for name, c := range map[string]struct {
		secret secret
		key    string
		want   string
		wrong  string
	}{
		"Cluster API's":      {secret: secret{"value": "K"}, want: "K"},
		"Flux's other":       {secret: secret{"value.yaml": "K"}, want: "K"},
		"value first":        {secret: secret{"value": "K", "value.yaml": "L"}, want: "K"},
		"a key of its own":   {secret: secret{"value": "K", "members": "L"}, key: "members", want: "L"},
		"a key that is not":  {secret: secret{"value": "hunter2"}, key: "members", wrong: "Secret acme/members: it has no key members"},
		"nothing":            {secret: secret{"token": "hunter2"}, wrong: "Secret acme/members: it has no key value"},
		"nothing but spaces": {secret: secret{"value": " \n"}, wrong: "Secret acme/members: value is empty"},
	} {
		got, err := credentials.Kubeconfig(c.secret.values(), "Secret acme/members", c.key)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if string(got) != c.want || said != c.wrong {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}

	if !credentials.HasKubeconfig(secret{"value.yaml": "K"}.values()) || credentials.HasKubeconfig(secret{"token": "t"}.values()) {
		t.Error("the layouts are taken for each other")
	}
}

func TestKarmada(t *testing.T) {
	certificate, _ := newCertificate(t)
	token, ca, err := credentials.Karmada(secret{"token": "t0ken\n", "caBundle": certificate}.values(), "Secret acme/eu-1")
	if err != nil || token != "t0ken" || string(ca) != certificate {
		t.Errorf("got %s, %s, %v", token, ca, err)
	}
	if _, ca, err := credentials.Karmada(secret{"token": "t0ken"}.values(), "Secret acme/eu-1"); err != nil || ca != nil {
		t.Errorf("without an authority: %s, %v", ca, err)
	}

	for name, s := range map[string]secret{
		"no token":         {"caBundle": certificate},
		"no PEM":           {"token": "t0ken", "caBundle": "hunter2"},
		"a token of space": {"token": "\n"},
	} {
		if _, _, err := credentials.Karmada(s.values(), "Secret acme/eu-1"); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestToken(t *testing.T) {
	if got, err := credentials.Token(secret{"token": "t0ken\n"}.values(), "Secret acme/webhook"); err != nil || got != "t0ken" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := credentials.Token(secret{"token": "\n", "password": "hunter2"}.values(), "Secret acme/webhook"); err == nil || err.Error() != "Secret acme/webhook: it has no token" {
		t.Errorf("got %v", err)
	}
}
