// SPDX-License-Identifier: Apache-2.0

package object

import "strings"

// hashLetters and hashLength are of the hash that kustomize appends to the name
// of what a generator makes.
const (
	hashLetters = "2456789bcdfghkmt"
	hashLength  = 10
)

// CutHash splits the name of a generated object into the name that the generator
// has in git and the hash of the content.
func CutHash(name string) (base, hash string, ok bool) {
	i := strings.LastIndexByte(name, '-')
	if i <= 0 || len(name)-i-1 != hashLength {
		return name, "", false
	}

	hash = name[i+1:]
	for j := range len(hash) {
		if strings.IndexByte(hashLetters, hash[j]) < 0 {
			return name, "", false
		}
	}
	return name[:i], hash, true
}
