// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"errors"
	"strconv"
	"strings"
)

const (
	maxQuantity = 64 // bytes
	maxExponent = 64
)

// IsQuantity is whether a text is an amount that can be computed with, if it
// is one at all: "1e99999999" is read at once, and adding one to it takes more
// memory than there is.
func IsQuantity(text string) bool {
	if len(text) > maxQuantity {
		return false
	}
	i := strings.LastIndexAny(text, "eE")
	if i < 0 || i == len(text)-1 || text[i+1] == 'i' {
		return true // "E" and "Ei" are units
	}
	exponent, err := strconv.Atoi(text[i+1:])
	if errors.Is(err, strconv.ErrSyntax) {
		return true // it has no exponent, and whoever reads it says so
	}
	return err == nil && -maxExponent <= exponent && exponent <= maxExponent
}
