// SPDX-License-Identifier: Apache-2.0

package oracle

// State is what a history has decided. Maps are by the key of an object, and
// by cluster.
type State struct {
	Commit, Accepted string
	// Verdict is empty, "refused" or "held"; Deletes is then what the commit
	// would delete.
	Verdict string
	Deletes string

	Bindings map[string]*Binding
	Departed map[string]map[string]Gone
	Left     map[string]map[string]Gone

	Time int64 // of the last commit
	// hour are the steps that deleted something since the last one that was
	// allowed to.
	hour []deleting

	fleet *fleet
}

// deleting is a step that deleted something for good.
type deleting struct {
	minute       int64
	count, works int // how many, of how many
}

// Binding is a template and where it goes.
type Binding struct {
	Claim string
	// Own tells that a policy activated it: it goes somewhere by itself, and
	// not only because others require it.
	Own                          bool
	Removed                      bool // it is not in git, but others still run with it
	TemplateCommit, PolicyCommit string
	Policy                       string
	Reason, Since                string // of what is pending
	Brakes                       Brakes
	Targets                      map[string]int64
	Scheduled                    string
	Works                        map[string]*Work

	template  *template
	own       Brakes // of the template's annotations, as they are in git
	policy    *policy
	unmatched bool // created or updated while nothing matched it
	placement placement
}

// Work is a template on a cluster.
type Work struct {
	Want, Released      *Content
	Held, Blocked       bool
	Preserve, Overwrite bool
	// After are the clusters that got more replicas when this one was to have fewer.
	After []string
}

// Content is what a cluster gets.
type Content struct {
	Manifest string
	Revision string // the commit that last changed it
	// share of replicas, which an override may have hidden
	share    int64
	requires []string
}

// Gone is an object that is not wanted on a cluster any more, or whose
// cluster is not in the fleet any more.
type Gone struct {
	Preserve bool
	Since    string
	// Heirs are the clusters that got it when this one lost it: a copy stays here
	// until theirs has arrived (decision 42).
	Heirs []string
	// Users are templates that ran with it under this generated name, and have to
	// arrive without it first (decision 35).
	Users []string
	// Owners ran here with it, so it goes after them.
	Owners   []string
	released *Content
}

// Commit is one step. Files is nil when it cannot be read. Allows are the
// deletions that its message allows, as State.Deletes tells them.
type Commit struct {
	Hash   string
	Time   int64 // when it was made, in seconds
	Files  map[string]string
	Allows []string
}

// work is a work of a state, nil when there is none.
func (s *State) work(key, cluster string) *Work {
	if b := s.Bindings[key]; b != nil {
		return b.Works[cluster]
	}
	return nil
}
