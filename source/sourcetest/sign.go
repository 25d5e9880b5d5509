// SPDX-License-Identifier: Apache-2.0

package sourcetest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// Key signs commits.
type Key struct {
	File   string // as a Secret of signers names it
	Public []byte
	ID     string // as errors name it

	sign func(payload []byte) []byte
}

// NewSSHKey makes a key that signs for a purpose, which is "git" for commits.
func NewSSHKey(t testing.TB, purpose string) *Key {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}

	return &Key{
		File: "ada.sshpub", Public: ssh.MarshalAuthorizedKey(signer.PublicKey()), ID: ssh.FingerprintSHA256(signer.PublicKey()),
		sign: func(payload []byte) []byte {
			sig, err := sshsig.Sign(bytes.NewReader(payload), signer, sshsig.HashSHA512, purpose)
			if err != nil {
				t.Fatal(err)
			}
			return sshsig.Armor(sig)
		},
	}
}

// What is wrong with an OpenPGP key.
const (
	Good        = ""
	Expired     = "expired"
	Revoked     = "revoked"
	NotToSign   = "not to sign"
	WithPrivate = "with private"
)

// NewPGPKey makes an OpenPGP key, and has something be wrong with it.
func NewPGPKey(t testing.TB, wrong string) *Key {
	t.Helper()
	config := &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA}
	if wrong == Expired {
		config.Time = func() time.Time { return time.Now().Add(-48 * time.Hour) }
		config.KeyLifetimeSecs = 24 * 3600
	}
	entity, err := openpgp.NewEntity("Ada", "", "ada@example.com", config)
	if err != nil {
		t.Fatal(err)
	}
	if wrong == Revoked {
		if err := entity.RevokeKey(packet.KeyCompromised, "", config); err != nil {
			t.Fatal(err)
		}
	}

	return &Key{
		File: "ada.asc", Public: export(t, entity, wrong, config), ID: strings.ToUpper(entity.PrimaryKey.KeyIdString()),
		sign: func(payload []byte) []byte {
			var b bytes.Buffer
			signing := *entity
			signing.Revocations = nil
			if err := openpgp.ArmoredDetachSign(&b, &signing, bytes.NewReader(payload), config); err != nil {
				t.Fatal(err)
			}
			return b.Bytes()
		},
	}
}

// export writes a key as gpg does.
func export(t testing.TB, entity *openpgp.Entity, wrong string, config *packet.Config) []byte {
	t.Helper()
	if wrong == NotToSign {
		self, identity := entity.PrimarySelfSignature()
		self.FlagSign = false
		if err := self.SignUserId(identity.UserId.Id, entity.PrimaryKey, entity.PrivateKey, config); err != nil {
			t.Fatal(err)
		}
		defer func() { self.FlagSign = true }() // it signs all the same
	}

	var b bytes.Buffer
	kind, write := openpgp.PublicKeyType, entity.Serialize
	if wrong == WithPrivate {
		kind, write = openpgp.PrivateKeyType, func(w io.Writer) error { return entity.SerializePrivate(w, config) }
	}
	w, err := armor.Encode(&b, kind, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Sign replaces the current commit by the same with a signature, as git commit -S makes
// it. It returns the new hash.
func (r *Repo) Sign(key *Key) string {
	r.t.Helper()
	raw := r.Git("cat-file", "commit", "HEAD") + "\n"
	return r.replaceHead(withSignature(raw, key.sign([]byte(raw))))
}

// SignHead replaces the current commit by one with this signature.
func (r *Repo) SignHead(signature string) string {
	r.t.Helper()
	return r.replaceHead(withSignature(r.Git("cat-file", "commit", "HEAD")+"\n", []byte(signature)))
}

func withSignature(raw string, signature []byte) string {
	header := "gpgsig " + strings.ReplaceAll(strings.TrimRight(string(signature), "\n"), "\n", "\n ")
	headers, message, _ := strings.Cut(raw, "\n\n")
	return headers + "\n" + header + "\n\n" + message
}

func (r *Repo) replaceHead(raw string) string {
	r.t.Helper()
	hash := r.GitIn(r.Dir, raw, "hash-object", "-t", "commit", "-w", "--stdin")
	r.Git("reset", "-q", "--soft", hash)
	return hash
}
