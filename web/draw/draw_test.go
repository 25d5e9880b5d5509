// SPDX-License-Identifier: Apache-2.0

package draw_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/web/draw"
)

var update = flag.Bool("update", false, "write the pictures anew")

// picture is what every kind has.
type picture interface{ SVG(width int) []byte }

// widths are those of a desk and of a telephone, without the margins of the page.
var widths = []int{1180, 358}

func TestPictures(t *testing.T) {
	for name, p := range pictures() {
		for _, width := range widths {
			t.Run(fmt.Sprintf("%s-%d", name, width), func(t *testing.T) {
				got := p.SVG(width)
				wellFormed(t, got)

				golden := filepath.Join("testdata", fmt.Sprintf("%s-%d.svg", name, width))
				if *update {
					if err := os.WriteFile(golden, got, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s is another picture; look at it with -update\n%s", golden, got)
				}
			})
		}
	}
}

func pictures() map[string]picture {
	return map[string]picture{
		"ruler":         mockRuler(),
		"ruler-crowded": crowdedRuler(),
		"ruler-waves":   wavesRuler(),
		"ruler-empty":   draw.Ruler{Branch: "main"},
		"ruler-one":     draw.Ruler{Branch: "main", Commits: []draw.Commit{{Short: "3f0c9aa", Subject: "first", Href: "/"}}},
		"ruler-hostile": hostileRuler(),
		"replicas":      mockReplicas(),
		"replicas-many": manyReplicas(),
		"replicas-fold": foldReplicas(),
		"replicas-none": draw.Replicas{Name: "shop/web"},
	}
}

func mockRuler() draw.Ruler {
	return draw.Ruler{
		Branch: "main",
		Commits: []draw.Commit{
			{Short: "3f0c9aa", Subject: "web 1.17.4", Detail: "tim, 11 days ago", Href: "/?at=3f0c9aa"},
			{Short: "a41e0b2", Subject: "web 1.18.0", Detail: "tim, 8 days ago", Href: "/?at=a41e0b2", Held: 3},
			{Short: "c07d551", Subject: "web: raise memory limit to 768Mi", Detail: "sofia, 5 days ago", Href: "/?at=c07d551", Held: 3, Here: true},
			{Short: "d11aa01", Subject: "search: typo in a selector", Detail: "tim, 3 days ago", Href: "/?at=d11aa01", Verdict: draw.Refused},
			{Short: "e55a9f0", Subject: "web 1.18.2", Detail: "tim, 2 days ago", Href: "/?at=e55a9f0", Held: 3},
		},
		Lanes: []draw.Lane{
			{Name: "dev-1", Wave: "canary", Href: "/clusters/dev-1", At: 4, State: draw.Current},
			{Name: "eu-1", Wave: "wave 1", Href: "/clusters/eu-1", At: 4, State: draw.InProgress, Note: "3 of 4 replicas"},
			{Name: "eu-2", Wave: "wave 1", Href: "/clusters/eu-2", At: 0, State: draw.Held, Backlog: 3, BacklogHref: "/holds", Note: "9d, mara, CHG-1188"},
			{Name: "us-1", Wave: "wave 2", Href: "/clusters/us-1", At: 0, State: draw.Held, Backlog: 3, BacklogHref: "/holds", Note: "9d, mara, CHG-1188"},
			{Name: "us-2", Wave: "wave 2", Href: "/clusters/us-2", At: 1, State: draw.Failed, Backlog: 2, BacklogHref: "/clusters/us-2", Note: "ImagePullBackOff"},
			{Name: "ap-1", Wave: "wave 3", Href: "/clusters/ap-1", At: 2, State: draw.Deferred, Backlog: 1, Note: "policy default-apps is Lazy"},
			{Name: "ap-2", Wave: "wave 3", Href: "/clusters/ap-2", At: 3, State: draw.Unknown, Note: "no answer for 4m"},
			{Name: "ap-3", Wave: "wave 3", Href: "/clusters/ap-3", State: draw.Absent},
		},
	}
}

// crowdedRuler has more commits than there is room for, and a commit that awaits
// confirmation at its end.
func crowdedRuler() draw.Ruler {
	subjects := []string{"web 1.18.%d", "raise memory limits of everything in shop (%d)", "api: rollout to wave %d", "drop the nightly export, no longer needed %d"}
	r := draw.Ruler{Branch: "release/2026-11", Older: 210, OlderHref: "/ruler?before=x"}
	for i := range 60 {
		c := draw.Commit{Short: fmt.Sprintf("%07x", 0x1234567+i*7919), Subject: fmt.Sprintf(subjects[i%4], i), Href: fmt.Sprintf("/ruler?at=%d", i)}
		if i > 48 {
			c.Held = 2
		}
		if i == 52 {
			c.Verdict, c.Held = draw.Refused, 0
		}
		if i == 59 {
			c.Verdict, c.Held = draw.Awaiting, 0
		}
		r.Commits = append(r.Commits, c)
	}
	for i := range 6 {
		r.Lanes = append(r.Lanes, draw.Lane{Name: fmt.Sprintf("cluster-%d", i), Href: "/clusters/x", At: 58, State: draw.Current})
	}
	r.Lanes[4].At, r.Lanes[4].State, r.Lanes[4].Backlog = 48, draw.Held, 10
	r.Lanes[5].At, r.Lanes[5].State, r.Lanes[5].Backlog = -1, draw.Outdated, 80
	return r
}

// wavesRuler has more clusters than there are lanes for.
func wavesRuler() draw.Ruler {
	r := mockRuler()
	r.Lanes = nil
	for i := range 100 {
		l := draw.Lane{Name: fmt.Sprintf("edge-%03d", i), Wave: fmt.Sprintf("wave %d", i/34+1), WaveHref: fmt.Sprintf("/?wave=%d", i/34+1), At: 4, State: draw.Current}
		if i >= 34 && i%5 == 0 {
			l.At, l.State, l.Backlog = 1, draw.Held, 2
		}
		if i >= 68 {
			l.At, l.State, l.Backlog = 0, draw.Held, 3
		}
		if i == 99 {
			l.State = draw.Absent
		}
		r.Lanes = append(r.Lanes, l)
	}
	return r
}

// hostile is a text that breaks out of where it is put, moves the cursor, turns the
// line around and does not end.
var hostile = `<script>alert("1")</script>'&]]>` + "\x00\x1b[31m\u202eevil\u202c\n\u200f" + strings.Repeat("é漢🙂", 100)

func hostileRuler() draw.Ruler {
	r := draw.Ruler{Branch: hostile}
	for range 3 {
		r.Commits = append(r.Commits, draw.Commit{Short: hostile, Subject: hostile, Detail: hostile, Href: `/?at="><script>`, Verdict: draw.Verdict(hostile)})
		r.Lanes = append(r.Lanes, draw.Lane{Name: hostile, Wave: hostile, Note: hostile, Href: "javascript:alert(1)", State: draw.State(hostile), Backlog: 2, At: 99})
	}
	return r
}

func mockReplicas() draw.Replicas {
	return draw.Replicas{Name: "Deployment shop/web", Live: true, Shares: []draw.Share{
		{Cluster: "eu-1", Href: "/clusters/eu-1", Asked: 5, Running: 5},
		{Cluster: "eu-2", Href: "/clusters/eu-2", Asked: 3, Running: 2},
		{Cluster: "us-1", Href: "/clusters/us-1", Asked: 5, Running: 4, Held: 1},
		{Cluster: "us-2", Href: "/clusters/us-2", Asked: 2, Running: 3, Held: 1},
		{Cluster: "ap-1", Href: "/clusters/ap-1", Asked: 0, Running: 0},
	}}
}

func foldReplicas() draw.Replicas {
	r := mockReplicas()
	r.Live = false
	return r
}

func manyReplicas() draw.Replicas {
	r := draw.Replicas{Name: "Deployment shop/web", Live: true}
	for i := range 120 {
		s := draw.Share{Cluster: fmt.Sprintf("edge-%03d.prod.eu-central-1.example.com", i), Asked: int64(10 + i%90), Running: int64(10 + i%90)}
		if i%30 == 7 {
			s.Held, s.Running = 5, s.Running-5
		}
		r.Shares = append(r.Shares, s)
	}
	return r
}

// wellFormed reads a picture with a parser, and finds nothing in it that a strict
// policy forbids or that a name brought along.
func wellFormed(t *testing.T, svg []byte) {
	t.Helper()
	allowed := regexp.MustCompile(`^(svg|g|a|title|text|tspan|line|rect|circle|path)$`)
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}

		switch e := token.(type) {
		case xml.StartElement:
			if !allowed.MatchString(e.Name.Local) {
				t.Errorf("element %s", e.Name.Local)
			}
			for _, a := range e.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "style" || a.Name.Local == "id" {
					t.Errorf("attribute %s=%q", a.Name.Local, a.Value)
				}
				if a.Name.Local == "href" && strings.HasPrefix(a.Value, "javascript:") {
					t.Errorf("link %q", a.Value)
				}
			}
		case xml.CharData:
			if bad := strings.ContainsAny(string(e), "\x00\x1b\u202e\u200f"); bad {
				t.Errorf("text %q", e)
			}
		}
	}
}

// A long text is cut to its place, and is in the title in full.
func TestTextIsCut(t *testing.T) {
	for name, p := range map[string]picture{"ruler": hostileRuler()} {
		for _, width := range widths {
			d := xml.NewDecoder(bytes.NewReader(p.SVG(width)))
			inText := 0
			whole := 0
			for {
				token, err := d.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				switch e := token.(type) {
				case xml.StartElement:
					if e.Name.Local == "text" {
						inText++
					}
				case xml.EndElement:
					if e.Name.Local == "text" {
						inText--
					}
				case xml.CharData:
					n := len([]rune(string(e)))
					if inText > 0 && n > 80 {
						t.Errorf("%s at %d: %d characters in one text", name, width, n)
					}
					if inText == 0 && n > 300 {
						whole++
					}
				}
			}
			if whole == 0 {
				t.Errorf("%s at %d: no title has the whole text", name, width)
			}
		}
	}
}
