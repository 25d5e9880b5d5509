// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/report"
)

func TestAbridge(t *testing.T) {
	for _, test := range []struct{ findings, want string }{
		{"", ""},
		{".a .b .a", ".a .b .a"},
		{".a .a .a .a", ".a .a .a .a"},
		{".a .b .a .a .a .a !c", ".a .b .a .a+2 !c"},
		{"xa xa xa xa xa xa", "xa xa xa xa xa xa"}, // errors are all there
	} {
		var findings []fleet.Finding
		level := map[byte]fleet.Severity{'.': fleet.SeverityNotice, '!': fleet.SeverityCaution, 'x': fleet.SeverityError}
		for word := range strings.FieldsSeq(test.findings) {
			findings = append(findings, fleet.Finding{Severity: level[word[0]], Code: word})
		}

		var got []string
		for f, more := range report.Abridge(findings, 4, report.KindOf) {
			word := f.Code
			if more > 0 {
				word += fmt.Sprintf("+%d", more)
			}
			got = append(got, word)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: got %s, want %s", test.findings, got, test.want)
		}
	}
}
