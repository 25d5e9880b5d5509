// SPDX-License-Identifier: Apache-2.0

package output_test

import (
	"strings"
	"testing"

	"github.com/fairlead/fairlead/look/output"
)

func table() *output.Table {
	return &output.Table{
		Columns: output.NewColumns("NAME", "STATE", "CLUSTERS", "WHY", "+", "FILE").Text("WHY").States("STATE"),
		Rows: [][]any{
			{"web", "current", output.Names{All: []string{"eu-1", "eu-2", "us-1", "us-2", "ap-1"}}, "it is placed there by its policy", "web.yaml:1"},
			{"größe\x1b[2J", "held", output.Names{}, nil},
		},
	}
}

// A pipe has everything; a screen has what fits, and where something is left out it is
// counted. -o wide shortens nothing.
func TestTable(t *testing.T) {
	for name, test := range map[string]struct {
		screen output.Screen
		wide   bool
		want   string
	}{
		"pipe": {want: `
NAME       STATE    CLUSTERS                  WHY
web        current  eu-1,eu-2,us-1,us-2,ap-1  it is placed there by its policy
größe [2J  held     <none>                    <none>
`},
		"screen": {screen: output.Screen{Width: 60}, want: `
NAME       STATE    CLUSTERS             WHY
web        current  eu-1,eu-2 +3 more    it is placed there…
größe [2J  held     <none>               <none>
`},
		"narrow": {screen: output.Screen{Width: 10}, want: `
NAME       STATE    CLUSTERS          WHY
web        current  eu-1 +4 more      it is placed th…
größe [2J  held     <none>            <none>
`},
		"wide": {screen: output.Screen{Width: 60}, wide: true, want: `
NAME       STATE    CLUSTERS                  WHY                               FILE
web        current  eu-1,eu-2,us-1,us-2,ap-1  it is placed there by its policy  web.yaml:1
größe [2J  held     <none>                    <none>                            <none>
`},
		"colours": {screen: output.Screen{Color: true}, want: strings.NewReplacer("G", "\x1b[32m", "Y", "\x1b[33m", "0", "\x1b[0m").Replace(`
NAME       STATE    CLUSTERS                  WHh
web        Gcurrent0  eu-1,eu-2,us-1,us-2,ap-1  it is placed there by its policy
größe [2J  Yheld0     <none>                    <none>
`)},
	} {
		var b strings.Builder
		tab := table()
		tab.Wide = test.wide
		if name == "colours" {
			tab.Columns[3].Name = "WHh" // Y stands for a colour
		}
		if err := tab.Text(&b, test.screen); err != nil {
			t.Fatal(err)
		}
		if got := "\n" + b.String(); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, test.want)
		}
	}
}

// What yields is cut first, down to its least width, and no column below its own.
func TestTableYields(t *testing.T) {
	for _, test := range []struct {
		width int
		want  string
	}{
		{0, "released after 12 commits  m1,m2,m3,m4,m5,m6,m7  twice as many replicas for the sale"},
		{80, "released after 12 commits  m1,m2,m3,m4,m5,m6,m7  twice as many replicas for the…"},
		{66, "released after 12 commits  m1,m2,m3 +4 more    twice as many repl…"},
		{55, "released after 12 commits  m1,m2 +5 more  twice as man…"},
		{50, "released after 12 commi…  m1,m2 +5 more  twice as…"},
		{44, "released after 12…  m1,m2 +5 more  twice as…"},
		{20, "released after 12…  m1,m2 +5 more  twice as…"},
	} {
		tab := &output.Table{Columns: output.NewColumns("WHAT", "CLUSTERS", "SUBJECT").Text("WHAT", "SUBJECT").
			Least(18, "WHAT").Least(13, "CLUSTERS").Least(9, "SUBJECT").Yield("SUBJECT", "CLUSTERS"), NoHeaders: true,
			Rows: [][]any{{"released after 12 commits", output.Names{All: []string{"m1", "m2", "m3", "m4", "m5", "m6", "m7"}}, "twice as many replicas for the sale"}}}
		var b strings.Builder
		if err := tab.Text(&b, output.Screen{Width: test.width}); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimRight(b.String(), "\n"); got != test.want {
			t.Errorf("%d columns:\n%s\nwant\n%s", test.width, got, test.want)
		}
	}
}
