// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/fairlead/fairlead/decrypt"
	"github.com/fairlead/fairlead/dispatch/member/decrypting"
)

// decryption returns what decrypts manifests with the keys of a directory. Without one it
// refuses what is encrypted.
func decryption(dir string) (decrypting.Decrypt, error) {
	var keys *decrypt.Keys
	if dir != "" {
		data := map[string][]byte{}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("--decryption: %w", err)
		}
		for _, entry := range entries {
			if ext := filepath.Ext(entry.Name()); ext != ".agekey" && ext != ".asc" {
				continue
			}
			if data[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
				return nil, fmt.Errorf("--decryption: %w", err)
			}
		}
		if keys, err = decrypt.Load(data); err != nil {
			return nil, fmt.Errorf("--decryption %s: %w", dir, err)
		}
	}
	return keys.Manifest, nil
}
