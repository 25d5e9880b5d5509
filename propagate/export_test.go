// SPDX-License-Identifier: Apache-2.0

package propagate

// LimitScripts lowers the steps that the scripts of a commit may take together, until
// restore is called.
func LimitScripts(steps int) (restore func()) {
	was := maxScripted
	maxScripted = steps
	return func() { maxScripted = was }
}
