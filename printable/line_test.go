// SPDX-License-Identifier: Apache-2.0

package printable_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fairlead/fairlead/printable"
)

func TestLine(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"web", "web"},
		{"größe 東京", "größe 東京"},
		{"a\n::set-output name=approved::true", "a ::set-output name=approved::true"},
		{"\x1b[31mred\x1b[0m", " [31mred [0m"},
		{"a\r\tb", "a  b"},
		{"user\u202e txt.exe", "user  txt.exe"},
		{"a\u2028b\u2066c\u200fd\u0085e", "a b c d e"},
		{"a\xffb", "a b"},
	} {
		if got := printable.Line(test.text); got != test.want {
			t.Errorf("%q: got %q, want %q", test.text, got, test.want)
		}
	}
}

func TestWriter(t *testing.T) {
	var b bytes.Buffer
	fmt.Fprintf(printable.NewWriter(&b), "one\t\x1b[2J\u202e\ntwo %s\r\n", "größe")
	if got, want := b.String(), "one\t [2J \ntwo größe \n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if printable.Raw(printable.NewWriter(&b)) != &b || printable.Raw(&b) != &b {
		t.Error("the writer behind it is another one")
	}
}

func BenchmarkLine(b *testing.B) {
	for b.Loop() {
		printable.Line("Deployment shop/checkout-api")
	}
}

func TestFprintf(t *testing.T) {
	var b bytes.Buffer
	printable.Fprintf(&b, "%s: %v, %v %d\n", "a\nb", errors.New("c\nd"), time.Duration(0), 7)
	if got, want := b.String(), "a b: c d, 0s 7\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
