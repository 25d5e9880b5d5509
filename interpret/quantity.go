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

// IsQuantity reports whether a text is usable as a quantity, provided that it
// is one at all: "1e99999999" parses at once, but adding one to it exhausts
// memory.
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
		return true // no exponent; whoever parses it reports the error
	}

	return err == nil && -maxExponent <= exponent && exponent <= maxExponent
}
