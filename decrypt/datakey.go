// SPDX-License-Identifier: Apache-2.0

package decrypt

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/ProtonMail/go-crypto/openpgp"
	pgparmor "github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/getsops/sops/v3/shamir"
)

const (
	// dataKeySize is that of AES-256; a share of one has a byte more.
	dataKeySize = 32
	// mostRecipients is how many keys one document may be encrypted for: each is tried.
	mostRecipients = 200
	// mostNamed is how many of them an error names.
	mostNamed = 5
)

// metadata is what SOPS notes of a document.
type metadata struct {
	group
	Groups    []group `json:"key_groups"`
	Threshold int     `json:"shamir_threshold"`

	EncryptedSuffix          string `json:"encrypted_suffix"`
	UnencryptedSuffix        string `json:"unencrypted_suffix"`
	EncryptedRegex           string `json:"encrypted_regex"`
	UnencryptedRegex         string `json:"unencrypted_regex"`
	EncryptedCommentRegex    string `json:"encrypted_comment_regex"`
	UnencryptedCommentRegex  string `json:"unencrypted_comment_regex"`
	encryptedRe, unencrypted *regexp.Regexp
}

// group are keys of which each has the whole data key, or the same share of it.
type group struct {
	Age []struct {
		Recipient string `json:"recipient"`
		Enc       string `json:"enc"`
	} `json:"age"`
	PGP []struct {
		Fingerprint string `json:"fp"`
		Enc         string `json:"enc"`
	} `json:"pgp"`
	KMS     []any `json:"kms"`
	GCP     []any `json:"gcp_kms"`
	Azure   []any `json:"azure_kv"`
	Vault   []any `json:"hc_vault"`
	Huawei  []any `json:"hckms"`
	Tencent []any `json:"tencent_kms"`
}

// readMetadata reads the field sops of a document.
func readMetadata(field any) (*metadata, error) {
	text, err := json.Marshal(field)
	if err != nil {
		return nil, errors.New("the field sops cannot be read")
	}
	m := &metadata{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, errors.New("the field sops cannot be read: it is not as SOPS writes it")
	}

	if m.encryptedRe, err = compiled(m.EncryptedRegex); err != nil {
		return nil, fmt.Errorf("sops.encrypted_regex: %w", err)
	}
	if m.unencrypted, err = compiled(m.UnencryptedRegex); err != nil {
		return nil, fmt.Errorf("sops.unencrypted_regex: %w", err)
	}
	return m, nil
}

func compiled(expression string) (*regexp.Regexp, error) {
	if expression == "" {
		return nil, nil
	}
	r, err := regexp.Compile(expression)
	if err != nil {
		return nil, errors.New("not a regular expression")
	}
	return r, nil
}

// dataKey decrypts the key of a document's values.
func (k *Keys) dataKey(m *metadata) ([]byte, error) {
	groups := m.Groups
	if len(groups) == 0 {
		groups = []group{m.group}
	}
	recipients := 0
	for _, g := range groups {
		recipients += len(g.Age) + len(g.PGP)
	}
	if recipients > mostRecipients {
		return nil, fmt.Errorf("it is encrypted for %d keys, and at most %d are tried", recipients, mostRecipients)
	}

	var shares [][]byte
	for _, g := range groups {
		if share := k.share(g); share != nil {
			shares = append(shares, share)
		}
	}

	needed := 1
	if len(groups) > 1 {
		if needed = m.Threshold; needed <= 0 {
			needed = len(groups)
		}
	}
	if len(shares) < needed {
		return nil, errors.New(wrongKey(groups, len(shares), needed))
	}
	if len(groups) == 1 {
		return checked(shares[0])
	}

	key, err := shamir.Combine(shares)
	if err != nil {
		return nil, errors.New("the shares of its key do not fit together")
	}
	return checked(key)
}

func checked(key []byte) ([]byte, error) {
	if len(key) != dataKeySize {
		return nil, errors.New("the key in it is not one of SOPS")
	}
	return key, nil
}

// share decrypts what a group has, with the first key that can; nil if none can.
func (k *Keys) share(g group) []byte {
	for _, entry := range g.Age {
		if share, err := k.openAge(entry.Enc); err == nil {
			return share
		}
	}
	for _, entry := range g.PGP {
		if share, err := k.openPGP(entry.Enc); err == nil {
			return share
		}
	}
	return nil
}

func (k *Keys) openAge(enc string) ([]byte, error) {
	if len(k.age) == 0 {
		return nil, errors.New("no age key")
	}
	plain, err := age.Decrypt(armor.NewReader(strings.NewReader(enc)), k.age...)
	if err != nil {
		return nil, err
	}
	return readKey(plain)
}

// openPGP opens a message. The parser has seen hostile packets before; what it says of
// them, or how it fails, is nobody's.
func (k *Keys) openPGP(enc string) (share []byte, err error) {
	if len(k.pgp) == 0 {
		return nil, errors.New("no OpenPGP key")
	}
	err = guarded(func() error {
		block, err := pgparmor.Decode(strings.NewReader(enc))
		if err != nil {
			return err
		}
		message, err := openpgp.ReadMessage(block.Body, k.pgp, nil, nil)
		if err != nil {
			return err
		}
		share, err = readKey(message.UnverifiedBody)
		return err
	})
	return share, err
}

// readKey reads a data key or a share of one, however much a message would unpack to.
func readKey(plain io.Reader) ([]byte, error) {
	key, err := io.ReadAll(io.LimitReader(plain, dataKeySize+2))
	if err == nil && len(key) > dataKeySize+1 {
		err = errors.New("it is longer than a key")
	}
	return key, err
}

// wrongKey says for whom a document is encrypted.
func wrongKey(groups []group, have, needed int) string {
	var names []string
	for _, g := range groups {
		for _, entry := range g.Age {
			names = append(names, entry.Recipient)
		}
		for _, entry := range g.PGP {
			names = append(names, "OpenPGP "+entry.Fingerprint)
		}
		names = append(names, g.services()...)
	}

	switch {
	case len(names) == 0:
		return "the field sops names no key"
	case needed > 1:
		return fmt.Sprintf("the given keys open %d of the %d key groups that are needed; it is encrypted for %s", have, needed, listed(names))
	}
	return "none of the given keys can open it: it is encrypted for " + listed(names)
}

// services are those that have a key of a group.
func (g group) services() (names []string) {
	for _, service := range []struct {
		name string
		keys []any
	}{{"AWS KMS", g.KMS}, {"GCP KMS", g.GCP}, {"Azure Key Vault", g.Azure}, {"Vault", g.Vault}, {"Huawei Cloud KMS", g.Huawei}, {"Tencent Cloud KMS", g.Tencent}} {
		if len(service.keys) > 0 {
			names = append(names, service.name+" (which is never asked)")
		}
	}
	return names
}

func listed(names []string) string {
	rest := ""
	if more := len(names) - mostNamed; more > 0 {
		names, rest = names[:mostNamed], fmt.Sprintf(" and %d more", more)
	}
	const longest = 80 // of a recipient that is one
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = name[:min(len(name), longest)]
	}
	return strings.Join(short, ", ") + rest
}
