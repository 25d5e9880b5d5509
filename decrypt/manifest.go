// SPDX-License-Identifier: Apache-2.0

package decrypt

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/fairlead/fairlead/object"
)

// errNotConfigured says what to do about it.
var errNotConfigured = errors.New("it is encrypted with SOPS, and no decryption is configured: spec.decryption of the Fleet, or run --decryption")

// Manifest returns a manifest as a cluster should have it: without the field sops and with
// its values decrypted, and of a Secret with the files in its data decrypted that are
// encrypted each by itself. A manifest without any of that is returned as it is. The
// manifest is not changed.
//
// Nil Keys decrypt nothing: what is encrypted is an error.
func (k *Keys) Manifest(manifest map[string]any) (map[string]any, error) {
	switch {
	case object.IsEncrypted(manifest):
		return k.whole(manifest)
	case !object.IsSecret(manifest):
		return manifest, nil
	}

	if err := checkOrphans(manifest); err != nil {
		return nil, err
	}
	if k == nil {
		return manifest, nil // whoever reads the files may decrypt them
	}
	return k.files(manifest)
}

func (k *Keys) whole(manifest map[string]any) (map[string]any, error) {
	if k == nil {
		return nil, errNotConfigured
	}
	o, err := k.open(manifest["sops"])
	if err != nil {
		return nil, err
	}

	rest := maps.Clone(manifest)
	delete(rest, "sops")
	opened, err := o.walk(rest, nil)
	if err != nil {
		return nil, err
	}
	return object.Stored(opened.(map[string]any)), nil
}

// checkOrphans refuses values that are encrypted in a Secret that does not say how: a
// server would store them as they are.
func checkOrphans(manifest map[string]any) error {
	for _, section := range []string{"data", "stringData"} {
		values, _ := manifest[section].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if text, ok := values[key].(string); ok && isEncrypted(text) {
				return fmt.Errorf("%s.%s is encrypted with SOPS, and the manifest has no field sops that says how", section, key)
			}
		}
	}
	return nil
}

// files decrypts the files in a Secret's data.
func (k *Keys) files(secret map[string]any) (map[string]any, error) {
	data, _ := secret["data"].(map[string]any)
	opened := maps.Clone(data)
	changed := false
	for _, key := range slices.Sorted(maps.Keys(data)) {
		text, _ := data[key].(string)
		content, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			continue // the server says so
		}
		plain, is, err := k.file(key, content)
		if err != nil {
			return nil, fmt.Errorf("data.%s: %w", key, err)
		}
		if is {
			opened[key], changed = base64.StdEncoding.EncodeToString(plain), true
		}
	}

	if !changed {
		return secret, nil
	}
	secret = maps.Clone(secret)
	secret["data"] = opened
	return secret, nil
}
