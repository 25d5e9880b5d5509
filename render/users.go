// SPDX-License-Identifier: Apache-2.0

package render

// Users returns the units that a file is rendered by: itself, or the kustomizations
// that read it.
func (b *Build) Users(file string) []string {
	if b.units.At(file) != nil {
		return []string{file}
	}
	if r := b.readers.At(file); r != nil {
		return r.units
	}
	return nil
}
