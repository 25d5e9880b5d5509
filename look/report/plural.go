// SPDX-License-Identifier: Apache-2.0

package report

import "fmt"

// Count reads "1 cluster", "2 clusters", "2 policies".
func Count(n int, thing string) string {
	switch {
	case thing == "polic" && n == 1:
		thing = "policy"
	case thing == "polic":
		thing = "policies"
	case n != 1:
		thing += "s"
	}

	return fmt.Sprintf("%d %s", n, thing)
}
