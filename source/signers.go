// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// Signers are the keys whose signatures count. The zero value has none.
type Signers struct {
	pgp pgpKeys
	ssh sshKeys
}

// Len is how many keys there are.
func (s Signers) Len() int { return len(s.pgp) + len(s.ssh) }

// ParseSigners reads public keys from files: NAME.asc has armored OpenPGP keys, and
// NAME.sshpub SSH keys as in authorized_keys. Other files are an error.
func ParseSigners(files map[string][]byte) (s Signers, err error) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		switch {
		case strings.HasSuffix(name, ".asc"):
			err = s.pgp.add(files[name])
		case strings.HasSuffix(name, ".sshpub"):
			err = s.ssh.add(files[name])
		default:
			err = errors.New("its name ends neither in .asc (OpenPGP) nor in .sshpub (SSH)")
		}
		if err != nil {
			return Signers{}, fmt.Errorf("%s: %w", name, err)
		}
	}

	return s, nil
}

// pgpKeys are OpenPGP keys, with their subkeys.
type pgpKeys openpgp.EntityList

var beginPGP = []byte("-----BEGIN PGP ")

// add reads every armored block of a file.
func (k *pgpKeys) add(file []byte) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("it cannot be read")
		}
	}()

	blocks := bytes.Split(file, beginPGP)[1:]
	if len(blocks) == 0 {
		return errors.New("it has no armored OpenPGP key")
	}
	for _, block := range blocks {
		entities, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(append(bytes.Clone(beginPGP), block...)))
		if err != nil {
			return errors.New("it is not an armored OpenPGP key")
		}
		for _, e := range entities {
			if e.PrivateKey != nil {
				return errors.New("it has a private key; only the public one is needed (gpg --armor --export)")
			}
		}
		*k = append(*k, entities...)
	}
	return nil
}

// verify checks a detached signature.
func (k pgpKeys) verify(payload, signature []byte) (key string, err error) {
	raw, sig, err := parsePGP(signature)
	if err != nil {
		return "", err
	}
	id := *sig.IssuerKeyId
	key = fmt.Sprintf("OpenPGP key %016X", id)

	all := openpgp.EntityList(k)
	switch {
	case weak(sig.Hash):
		return key, errors.New("its hash function is broken")
	case len(all.KeysById(id)) == 0:
		return key, errors.New("the key is not known")
	case len(all.KeysByIdUsage(id, packet.KeyFlagSign)) == 0:
		return key, errors.New("the key is not for signing")
	}

	_, _, err = openpgp.VerifyDetachedSignature(all, bytes.NewReader(payload), bytes.NewReader(raw), nil)
	switch {
	case errors.Is(err, pgperrors.ErrKeyRevoked):
		return key, errors.New("the key is revoked")
	case errors.Is(err, pgperrors.ErrKeyExpired):
		return key, errors.New("the key has expired")
	case errors.Is(err, pgperrors.ErrSignatureExpired):
		return key, errors.New("the signature has expired")
	case err != nil:
		return key, errors.New("the signature does not fit the commit")
	}
	return key, nil
}

// parsePGP reads the one signature in an armored block.
func parsePGP(armored []byte) (raw []byte, sig *packet.Signature, err error) {
	unreadable := errors.New("its OpenPGP signature cannot be read")
	block, err := armor.Decode(bytes.NewReader(armored))
	if err != nil || block.Type != openpgp.SignatureType {
		return nil, nil, unreadable
	}
	if raw, err = io.ReadAll(block.Body); err != nil {
		return nil, nil, unreadable
	}

	packets := packet.NewReader(bytes.NewReader(raw))
	first, err := packets.Next()
	sig, ok := first.(*packet.Signature)
	if err != nil || !ok || sig.IssuerKeyId == nil {
		return nil, nil, unreadable
	}
	if _, err := packets.Next(); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("it has more than one signature")
	}
	return raw, sig, nil
}

func weak(h crypto.Hash) bool {
	return !slices.Contains([]crypto.Hash{crypto.SHA224, crypto.SHA256, crypto.SHA384, crypto.SHA512, crypto.SHA3_256, crypto.SHA3_512}, h)
}

// sshKeys are SSH keys.
type sshKeys []ssh.PublicKey

// add reads the lines of a file.
func (k *sshKeys) add(file []byte) error {
	for i, line := range strings.Split(string(file), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, _, options, _, err := ssh.ParseAuthorizedKey([]byte(line))
		_, isCertificate := key.(*ssh.Certificate)
		switch {
		case err != nil:
			return fmt.Errorf("line %d is not an SSH public key", i+1)
		case len(options) > 0 || isCertificate:
			return fmt.Errorf("line %d has options or is a certificate, which are not supported", i+1)
		case key.Type() == ssh.InsecureKeyAlgoDSA: //nolint:staticcheck // to refuse it
			return fmt.Errorf("line %d is a DSA key, which is broken", i+1)
		}
		*k = append(*k, key)
	}

	if len(*k) == 0 {
		return errors.New("it has no SSH public key")
	}
	return nil
}

// purpose is what git signs commits for; a signature made for anything else is none.
const purpose = "git"

// verify checks a signature as ssh-keygen -Y sign makes it.
func (k sshKeys) verify(payload, signature []byte) (key string, err error) {
	sig, err := sshsig.Unarmor(signature)
	if err != nil {
		return "", errors.New("its SSH signature cannot be read")
	}
	key = "SSH key " + ssh.FingerprintSHA256(sig.PublicKey)

	known := slices.ContainsFunc(k, func(known ssh.PublicKey) bool { return bytes.Equal(known.Marshal(), sig.PublicKey.Marshal()) })
	switch {
	case !known:
		return key, errors.New("the key is not known")
	case sig.Namespace != purpose:
		return key, errors.New("the signature is for another purpose")
	case sig.Signature.Format == ssh.KeyAlgoRSA:
		return key, errors.New("its hash function is broken")
	}

	if err := sshsig.Verify(bytes.NewReader(payload), sig, sig.PublicKey, sig.HashAlgorithm, purpose); err != nil {
		return key, errors.New("the signature does not fit the commit")
	}
	return key, nil
}
