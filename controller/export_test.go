// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/reconcile"
)

// Report writes a Result to the status of a Fleet; err is why its loop cannot be opened.
func Report(f *v1alpha1.Fleet, r reconcile.Result, err error, now time.Time) {
	report(f, &observation{result: r, opened: err == nil, err: err, branch: "main", handled: "token"}, now)
}

// ReportStalled writes that a Fleet cannot be reconciled before it changes.
var ReportStalled = reportStalled
