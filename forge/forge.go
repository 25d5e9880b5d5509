// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"context"
	"time"
)

// Repository is a repository on a forge, as the account sees it that the token belongs to.
type Repository interface {
	// Pulls lists the open pull requests against a branch, the one first that was updated
	// last, and reports whether there are more of them than it was asked for.
	Pulls(ctx context.Context, branch string, most int) (open []OpenPull, more bool, err error)
	// Status returns what a commit has under a context; nil if there is none.
	Status(ctx context.Context, commit, name string) (*Status, error)
	// SetStatus writes a status of a commit.
	SetStatus(ctx context.Context, commit string, s Status) error
}

// Forge is one pull request on a forge, as the account sees it that the token belongs
// to. A GitLab merge request is a pull request here.
type Forge interface {
	Repository
	// Self returns the account that writes.
	Self(ctx context.Context) (Account, error)
	// Pull returns the pull request as it is now.
	Pull(ctx context.Context) (Pull, error)
	// Comments returns every comment, oldest first.
	Comments(ctx context.Context) ([]Comment, error)
	// Post adds a comment.
	Post(ctx context.Context, body string) (Comment, error)
	// Edit replaces the body of a comment.
	Edit(ctx context.Context, id int64, body string) error
	// MostBytes is how long a comment may be.
	MostBytes() int
}

// Checker is a Forge that shows annotations beside the changed lines.
type Checker interface {
	// Check writes a check run of a commit, unless an equal one is there.
	Check(ctx context.Context, c Check) error
}

// Account is who writes.
type Account struct {
	ID    int64 // 0 where the forge does not tell
	Login string
}

// wrote reports whether a comment is by the account.
func (a Account) wrote(c Comment) bool {
	if a.ID != 0 && c.Author.ID != 0 {
		return a.ID == c.Author.ID
	}
	return a.Login != "" && a.Login == c.Author.Login
}

// Pull is a pull request.
type Pull struct {
	Head   string // the commit to be merged
	Merge  string // a merge of it that the forge made for tests; "" if it tells none
	Target string // the branch that it is merged into
	Base   string // the commit of that branch now; "" if the token may not read it
}

// OpenPull is a pull request in a list.
type OpenPull struct {
	Number  int64
	Head    string // the commit to be merged
	Ref     string // under which the repository itself has it, also that of a fork
	Fork    bool   // it comes from another repository, or nobody knows from where
	Draft   bool
	Updated time.Time
}

// isSound reports whether an answer of a forge can be worked with.
func (p OpenPull) isSound() bool { return p.Number > 0 && isCommit(p.Head) }

// Comment is a comment on a pull request.
type Comment struct {
	ID     int64
	Author Account
	Body   string
	URL    string
}

// State is the state of a commit status.
type State string

// The states that a plan or a rollout leads to.
const (
	StatePending State = "pending"
	StateSuccess State = "success"
	StateFailure State = "failure"
)

// Status is a commit status.
type Status struct {
	Context     string // its name
	State       State
	Description string
	URL         string // what it links to
}

// Check is a check run with annotations.
type Check struct {
	Name        string
	Commit      string
	State       State
	Title       string
	Summary     string
	Key         string // equal keys mean equal checks
	Annotations []Annotation
}

// Annotation is a remark on a line of a file.
type Annotation struct {
	Path    string
	Line    int
	Level   string // failure, warning or notice
	Title   string
	Message string
}
