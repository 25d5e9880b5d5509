// SPDX-License-Identifier: Apache-2.0

package decrypt

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// encrypted is how SOPS writes a value.
var encrypted = regexp.MustCompile(`^ENC\[AES256_GCM,data:(.*),iv:(.+),tag:(.+),type:(.+)\]$`)

// isEncrypted reports whether a text is a value that SOPS has encrypted.
func isEncrypted(text string) bool { return strings.HasPrefix(text, "ENC[AES256_GCM,") }

// opener decrypts the values of one document.
type opener struct {
	*metadata
	block  cipher.Block
	opened int
}

// open is the opener of a document.
func (k *Keys) open(field any) (*opener, error) {
	m, err := readMetadata(field)
	if err != nil {
		return nil, err
	}
	key, err := k.dataKey(m)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	return &opener{metadata: m, block: block}, err
}

// walk decrypts what is below a path. What is not encrypted stays as it is, unless the
// document says that everything there is.
func (o *opener) walk(value any, path []string) (any, error) {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, child := range value {
			opened, err := o.walk(child, append(path[:len(path):len(path)], key))
			if err != nil {
				return nil, err
			}
			out[key] = opened
		}
		return out, nil
	case []any:
		out := make([]any, len(value))
		for i, child := range value {
			opened, err := o.walk(child, path)
			if err != nil {
				return nil, err
			}
			out[i] = opened
		}
		return out, nil
	case nil:
		return nil, nil
	}

	if text, ok := value.(string); ok && (text == "" || isEncrypted(text)) {
		return o.value(text, path)
	}
	if o.must(path) {
		return nil, fmt.Errorf("%s is not encrypted, and the document says that it is: encrypt the file again", strings.Join(path, "."))
	}
	return value, nil
}

// value decrypts one value: the place where it stands is authenticated with it.
func (o *opener) value(text string, path []string) (any, error) {
	if text == "" {
		return text, nil // SOPS leaves it
	}
	o.opened++
	plain, kind, err := o.plain(text, strings.Join(path, ":")+":")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(path, "."), err)
	}

	var value any
	switch kind {
	case "str", "bytes", "time":
		return string(plain), nil
	case "int":
		value, err = strconv.ParseInt(string(plain), 10, 64)
	case "float":
		value, err = strconv.ParseFloat(string(plain), 64)
	case "bool":
		value, err = strconv.ParseBool(string(plain))
	default:
		return nil, fmt.Errorf("%s: it is encrypted as a type that is not known", strings.Join(path, "."))
	}
	if err != nil { // which would quote it
		return nil, fmt.Errorf("%s: it is not of the type that it is encrypted as", strings.Join(path, "."))
	}
	return value, nil
}

var errDamaged = errors.New("it is damaged, or was moved here from another place")

func (o *opener) plain(text, place string) (plain []byte, kind string, err error) {
	parts := encrypted.FindStringSubmatch(text)
	if parts == nil {
		return nil, "", errDamaged
	}
	var raw [3][]byte
	for i := range raw {
		if raw[i], err = base64.StdEncoding.DecodeString(parts[i+1]); err != nil {
			return nil, "", errDamaged
		}
	}

	gcm, err := cipher.NewGCMWithNonceSize(o.block, len(raw[1]))
	if err != nil {
		return nil, "", errDamaged
	}
	plain, err = gcm.Open(nil, raw[1], append(raw[0], raw[2]...), []byte(place))
	if err != nil {
		return nil, "", errDamaged
	}
	return plain, parts[4], nil
}

// must reports whether the document says that a value is encrypted. What names an object,
// and what fairlead adds to it, is readable.
func (o *opener) must(path []string) bool {
	switch path[0] {
	case "apiVersion", "kind", "metadata", "status", "sops":
		return false
	}
	if o.EncryptedCommentRegex != "" || o.UnencryptedCommentRegex != "" {
		return false // comments are gone
	}

	must := true
	if s := o.UnencryptedSuffix; s != "" && some(path, func(p string) bool { return strings.HasSuffix(p, s) }) {
		must = false
	}
	if s := o.EncryptedSuffix; s != "" {
		must = some(path, func(p string) bool { return strings.HasSuffix(p, s) })
	}
	if o.unencrypted != nil && some(path, o.unencrypted.MatchString) {
		must = false
	}
	if o.encryptedRe != nil {
		must = some(path, o.encryptedRe.MatchString)
	}
	return must
}

func some(path []string, is func(string) bool) bool {
	for _, p := range path {
		if is(p) {
			return true
		}
	}
	return false
}
