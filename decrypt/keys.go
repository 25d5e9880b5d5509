// SPDX-License-Identifier: Apache-2.0

package decrypt

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"filippo.io/age"
	"github.com/ProtonMail/go-crypto/openpgp"
)

// Keys are private keys.
type Keys struct {
	age []age.Identity
	pgp openpgp.EntityList
}

// Load reads the keys of a Secret's data: age in *.agekey, OpenPGP in *.asc, armoured and
// without a passphrase. Other entries are passed over. An error names the entry and quotes
// nothing.
func Load(data map[string][]byte) (*Keys, error) {
	k := &Keys{}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		var err error
		switch path.Ext(name) {
		case ".agekey":
			err = k.addAge(data[name])
		case ".asc":
			err = guarded(func() error { return k.addPGP(data[name]) })
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}

	if len(k.age)+len(k.pgp) == 0 {
		return nil, errors.New("there is no key: age keys are read from *.agekey, OpenPGP keys from *.asc")
	}
	return k, nil
}

func (k *Keys) addAge(content []byte) error {
	identities, err := age.ParseIdentities(bytes.NewReader(content))
	if err != nil {
		return errors.New("no age key can be read: lines must be AGE-SECRET-KEY-…, or comments")
	}
	k.age = append(k.age, identities...)
	return nil
}

func (k *Keys) addPGP(content []byte) error {
	ring, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(content))
	if err != nil {
		return errors.New("no OpenPGP key can be read: it must be armoured, as gpg --export-secret-keys --armor writes it")
	}

	for _, entity := range ring {
		switch {
		case entity.PrivateKey == nil:
			return errors.New("the OpenPGP key is a public one")
		case isLocked(entity):
			return errors.New("the OpenPGP key has a passphrase: nobody can be asked for it")
		}
	}
	k.pgp = append(k.pgp, ring...)
	return nil
}

func isLocked(entity *openpgp.Entity) bool {
	if entity.PrivateKey.Encrypted {
		return true
	}
	return slices.ContainsFunc(entity.Subkeys, func(s openpgp.Subkey) bool { return s.PrivateKey != nil && s.PrivateKey.Encrypted })
}

// guarded makes a panic of a parser an error.
func guarded(do func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("malformed OpenPGP")
		}
	}()
	return do()
}
