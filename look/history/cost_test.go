// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// A03: a commit whose tree cannot be compared or read is refused as any broken commit
// is, and the one that takes it back is folded.
func TestA3TreesThatCannotBeRead(t *testing.T) {
	for name, test := range map[string]struct {
		tree func(g *sourcetest.Repo, blob string) string // the hash of a directory
		want string
	}{
		"a tree of ten million paths": {func(g *sourcetest.Repo, blob string) string {
			tree := directory(g, strings.Repeat("100644 blob "+blob+"\tf%d\n", 10))
			for range 6 {
				tree = directory(g, strings.Repeat("040000 tree "+tree+"\td%d\n", 10))
			}
			return tree
		}, "too many paths differ: more than 1000000 from those of the last accepted commit"},
		"a tree of long paths": {func(g *sourcetest.Repo, blob string) string {
			tree := directory(g, strings.Repeat("100644 blob "+blob+"\tf%d\n", 100))
			for range 150 {
				tree = directory(g, "040000 tree "+tree+"\t"+strings.Repeat("d", 250)+"\n")
			}
			return directory(g, strings.Repeat("040000 tree "+tree+"\td%d\n", 100))
		}, "too many paths differ"},
		"directories too deep": {func(g *sourcetest.Repo, blob string) string {
			tree := directory(g, "100644 blob "+blob+"\tf\n")
			for range 300 {
				tree = directory(g, "040000 tree "+tree+"\td\n")
			}
			return tree
		}, "directories deep"},
		"a name that git would not write": {func(g *sourcetest.Repo, blob string) string {
			return directory(g, "100644 blob "+blob+"\ta\\b\n")
		}, "invalid path"},
	} {
		for _, path := range []string{".", "fleet"} {
			t.Run(name+" at "+path, func(t *testing.T) {
				g := sourcetest.New(t)
				good := g.Commit("good", map[string]string{"fleet/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"})
				blob := g.Git("rev-parse", "HEAD:fleet/a.yaml")
				root := directory(g, "040000 tree "+test.tree(g, blob)+"\tx\n100644 blob "+blob+"\ta.yaml\n")
				if path != "." {
					root = directory(g, "040000 tree "+root+"\t"+path+"\n")
				}
				bad := g.Git("commit-tree", root, "-p", good, "-m", "bad")
				back := g.Git("commit-tree", good+"^{tree}", "-p", bad, "-m", "back")

				repo, err := source.Open(g.Dir)
				if err != nil {
					t.Fatal(err)
				}
				h := history.New(repo, path)
				var refused *propagate.Refusal
				commits, err := h.Commits("", back)
				if err != nil {
					t.Fatal(err)
				}
				state, err := h.Fold(propagate.State{}, commits, func(c *source.Commit, s propagate.State) error {
					if c.Hash == bad {
						refused = s.Refusal
					}
					return nil
				})
				if err != nil || state.Accepted != back || state.Refusal != nil {
					t.Fatalf("the fold ends at %s: %v", state.Accepted, err)
				}
				if refused == nil || !strings.Contains(fmt.Sprint(refused.Problems), test.want) || len(refused.Problems) != 1 {
					t.Errorf("refused for %+v", refused)
				}
			})
		}
	}
}

// directory writes a tree object; %d in a line is its number.
func directory(g *sourcetest.Repo, listing string) string {
	var b strings.Builder
	for i, line := range strings.SplitAfter(listing, "\n") {
		b.WriteString(strings.ReplaceAll(line, "%d", fmt.Sprintf("%03d", i)))
	}
	return g.GitIn(g.Dir, b.String(), "mktree", "--missing")
}
