// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// Commit is one commit of the first-parent line.
type Commit struct {
	Hash    string
	Parent  string // first parent; "" for a root
	Subject string
	Author  string // "Name <mail>"
	// Authored is the author date, When the commit date, both in UTC.
	Authored, When time.Time
	// Trailers are those of the commit's own message. What a merge brings along has
	// no say.
	Trailers []Trailer

	repo *Repo
	tree plumbing.Hash
}

// Trailer is a "Key: value" line at the end of a commit message.
type Trailer struct{ Key, Value string }

// Commit reads one commit by its full hash.
func (r *Repo) Commit(hash string) (*Commit, error) {
	if !plumbing.IsHash(hash) {
		return nil, fmt.Errorf("commit %q: not a full hash", hash)
	}
	c, err := r.commit(plumbing.NewHash(hash))
	if err != nil {
		return nil, err
	}
	return r.fill(c), nil
}

// Merges returns the parents of a commit but the first: what a merge brings in.
func (r *Repo) Merges(hash string) (tips []string, err error) {
	c, err := r.commit(plumbing.NewHash(hash))
	if err != nil || len(c.parents) == 0 {
		return nil, err
	}
	for _, p := range c.parents[1:] {
		tips = append(tips, p.String())
	}
	return tips, nil
}

// fill makes the public commit.
func (r *Repo) fill(c *commit) *Commit {
	out := &Commit{
		Hash: c.hash.String(), Subject: c.subject(), Author: c.author, Authored: c.authored, When: c.when,
		Trailers: trailers(c.message), repo: r, tree: c.tree,
	}
	if len(c.parents) > 0 {
		out.Parent = c.parents[0].String()
	}
	return out
}

// commit is a commit object.
type commit struct {
	hash, tree plumbing.Hash
	parents    []plumbing.Hash
	author     string
	authored   time.Time
	when       time.Time
	message    string
}

// commit reads a commit, and refuses objects of another type.
func (r *Repo) commit(h plumbing.Hash) (*commit, error) {
	kind, b, err := r.object(h)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", short(h), err)
	}
	if kind != plumbing.CommitObject {
		return nil, fmt.Errorf("commit %s: is a %s, not a commit", short(h), kind)
	}
	return parseCommit(h, b)
}

// parseCommit is strict about the headers it reads: tree, parents, author and
// committer must be in this order and not repeated, so that no two readers can
// see different trees in one commit.
func parseCommit(h plumbing.Hash, b []byte) (*commit, error) {
	headers, message, _ := bytes.Cut(b, []byte("\n\n"))
	c := &commit{hash: h, message: strings.ToValidUTF8(string(message), "�")}
	stage := 0
	for line := range bytes.Lines(append(headers, '\n')) {
		key, value, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		at, known := commitHeaders[string(key)]
		if !known {
			continue // encoding, signatures and their continuation lines
		}

		if at < stage || at == stage && at != parentHeader {
			return nil, fmt.Errorf("commit %s: header %q is out of order", short(h), key)
		}

		stage = at
		switch at {
		case treeHeader, parentHeader:
			if !plumbing.IsHash(string(value)) {
				return nil, fmt.Errorf("commit %s: header %q is not a hash", short(h), key)
			}
			if at == treeHeader {
				c.tree = plumbing.NewHash(string(value))
			} else {
				c.parents = append(c.parents, plumbing.NewHash(string(value)))
			}
		case authorHeader:
			c.author, c.authored = signature(value)
		case committerHeader:
			_, c.when = signature(value)
		}
	}

	if c.tree.IsZero() || stage != committerHeader {
		return nil, fmt.Errorf("commit %s: headers are missing", short(h))
	}

	return c, nil
}

const (
	treeHeader = iota + 1
	parentHeader
	authorHeader
	committerHeader
)

var commitHeaders = map[string]int{
	"tree": treeHeader, "parent": parentHeader, "author": authorHeader, "committer": committerHeader,
}

// signature splits "Name <mail> seconds zone".
func signature(b []byte) (who string, when time.Time) {
	s := strings.ToValidUTF8(string(b), "�")
	end := strings.LastIndexByte(s, '>')
	if end < 0 {
		return s, time.Unix(0, 0).UTC()
	}

	seconds, _, _ := strings.Cut(strings.TrimSpace(s[end+1:]), " ")
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		n = 0
	}

	return s[:end+1], time.Unix(n, 0).UTC()
}

// subject is git's: the first paragraph on one line.
func (c *commit) subject() string {
	message := strings.TrimLeft(c.message, "\n")
	first, _, _ := strings.Cut(message, "\n\n")
	return strings.Join(strings.Fields(first), " ")
}

var trailerLine = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9-]*)[ \t]*:[ \t]*(.*)$`)

// trailers finds them as git does: in the last paragraph, unless it is also the
// first, if all its lines are trailers, or if a quarter of them are and one is
// git's own.
func trailers(message string) []Trailer {
	paragraphs := paragraphsOf(message)
	if len(paragraphs) < 2 {
		return nil
	}

	var found []Trailer
	others, gits := 0, false
	for _, line := range paragraphs[len(paragraphs)-1] {
		m := trailerLine.FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "(cherry picked from commit "):
			gits = true
		case m != nil:
			found = append(found, Trailer{m[1], strings.TrimSpace(m[2])})
			gits = gits || m[1] == "Signed-off-by"
		case (line[0] == ' ' || line[0] == '\t') && len(found) > 0:
			found[len(found)-1].Value += " " + strings.TrimSpace(line)
		default:
			others++
		}
	}

	if others > 0 && (!gits || len(found)*3 < others) {
		return nil
	}

	return found
}

func paragraphsOf(message string) (paragraphs [][]string) {
	var paragraph []string
	for line := range strings.Lines(message + "\n\n") {
		line = strings.TrimRight(line, " \t\r\n")
		if line != "" {
			paragraph = append(paragraph, line)
		} else if len(paragraph) > 0 {
			paragraphs, paragraph = append(paragraphs, paragraph), nil
		}
	}

	return paragraphs
}

// ErrNoPath is wrapped by Tree if a commit has no such directory.
var ErrNoPath = errors.New("no such directory")

// Tree is the directory at path in the commit; "" or "." is the root.
func (c *Commit) Tree(path string) (*Tree, error) {
	h := c.tree
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if name == "" || name == "." {
			continue
		}

		entries, err := listingOf(c.repo, h)
		if err != nil {
			return nil, fmt.Errorf("commit %s: %w", c.Hash[:8], err)
		}

		e, there := entries.lookup(name)
		if !there || !e.isDir() {
			return nil, fmt.Errorf("commit %s: %s: %w", c.Hash[:8], path, ErrNoPath)
		}

		h = e.hash
	}

	return newTree(c.repo, h), nil
}
