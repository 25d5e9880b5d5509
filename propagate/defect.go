// SPDX-License-Identifier: Apache-2.0

package propagate

import "github.com/fairlead/fairlead/fleet"

// defect is why a commit is refused on which the fold itself fails (decision 43). It
// says nothing of the panic: what a runtime says of one may differ between machines,
// or quote a value.
var defect = fleet.Problem{Message: "fairlead fails on this commit because of a defect of its own, on every machine alike; nothing of it takes effect. Please report it, and revert what it changes"}

// recovered is deferred by what must not end the process. After a panic, instead
// makes the result. What Step and its like work on is never altered, so nothing is
// left half done.
func recovered(instead func()) {
	if fleet.Recovered(recover()) {
		instead()
	}
}
