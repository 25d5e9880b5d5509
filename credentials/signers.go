// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"strings"

	"github.com/fairlead/fairlead/source"
)

// Signers reads the keys whose signatures count: those under NAME.asc and NAME.sshpub.
// Other keys of the Secret are not read.
func Signers(values map[string][]byte, name string) (source.Signers, error) {
	d, files := data{name, values}, map[string][]byte{}
	for key, value := range values {
		if strings.HasSuffix(key, ".asc") || strings.HasSuffix(key, ".sshpub") {
			files[key] = value
		}
	}
	if len(files) == 0 {
		return source.Signers{}, d.errorf("it has no key of a signer: *.asc (OpenPGP) or *.sshpub (SSH)")
	}

	signers, err := source.ParseSigners(files)
	if err != nil {
		return source.Signers{}, d.errorf("%w", err)
	}
	return signers, nil
}
