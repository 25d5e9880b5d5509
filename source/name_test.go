// SPDX-License-Identifier: Apache-2.0

package source

import (
	"math/rand/v2"
	"testing"
)

// A name that isSimpleName accepts is valid.
func TestPlainNamesAreProper(t *testing.T) {
	const letters = ".gGiItT~1a/\\ \x00\x1f\x7f\x80é\u200cz:-_"
	runes := []rune(letters)
	rng := rand.New(rand.NewPCG(1, 2))
	plain := 0
	for range 200_000 {
		name := make([]rune, rng.IntN(7))
		for i := range name {
			name[i] = runes[rng.IntN(len(runes))]
		}

		if !isSimpleName([]byte(string(name))) {
			continue
		}

		if plain++; !isValidName(string(name)) {
			t.Fatalf("%q", string(name))
		}
	}

	if plain < 1000 {
		t.Errorf("only %d names were plain", plain)
	}
}
