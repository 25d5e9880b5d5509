// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"

	"github.com/fairlead/fairlead/source"
)

// Verify is which commits must be signed, and by whom. The zero value asks for nothing.
type Verify struct {
	Mode    VerifyMode
	Signers source.Signers
}

// VerifyMode is which commits must be signed.
type VerifyMode string

// The modes. Only commits after what was folded are asked.
const (
	// VerifyHead folds nothing past a head that no signer has signed.
	VerifyHead VerifyMode = "HEAD"
	// VerifyEachCommit folds up to the first commit of the first-parent line that no signer
	// has signed.
	VerifyEachCommit VerifyMode = "EachCommit"
)

// SetVerify replaces Options.Verify, from the next round on. It may be called beside a
// Round. What was folded stays folded.
func (l *Loop) SetVerify(v Verify) { l.verify.Store(&v) }

// verified returns up to which commit may be folded, "" if there is nothing, and a
// *source.VerificationError if that is not head. Of the commits after it nothing is read,
// not even their trailers.
func (l *Loop) verified(head string) (to string, err error) {
	v := l.verify.Load()
	switch v.Mode {
	case "":
		return head, nil
	case VerifyHead:
		if err := l.repo.Verify(head, v.Signers); err != nil {
			return "", err
		}
		return head, nil
	case VerifyEachCommit:
		return l.verifiedEach(head, v.Signers)
	}
	return "", fmt.Errorf("verification mode %q is neither %s nor %s", v.Mode, VerifyHead, VerifyEachCommit)
}

func (l *Loop) verifiedEach(head string, by source.Signers) (to string, err error) {
	commits, err := l.unfolded(head)
	if err != nil {
		return "", err
	}
	for i, c := range commits {
		var failed *source.VerificationError
		err := l.repo.Verify(c.Hash, by)
		switch {
		case err == nil:
			continue
		case !errors.As(err, &failed):
			return "", err
		case l.state.Commit == "":
			return l.beginning(commits, i, by, failed)
		case i == 0:
			return "", failed
		}
		return commits[i-1].Hash, failed
	}

	return head, nil
}

// unfolded are the commits that have not been folded, oldest first.
func (l *Loop) unfolded(head string) ([]*source.Commit, error) {
	since := l.state.Commit
	if since != "" && !l.repo.Has(since) {
		since = ""
	}
	commits, err := l.history.Commits(since, head)
	if errors.Is(err, source.ErrNotAncestor) {
		return l.history.Commits("", head) // a rewritten branch is folded from its beginning
	}
	return commits, err
}

// beginning is how far to fold while nothing is, when commit i is not verified. A signed
// commit after that one shows that it is no stray: the fleet was somewhere behind it before
// the state was lost, or before a key was taken away, and must not be brought back to what
// was before it.
func (l *Loop) beginning(commits []*source.Commit, i int, by source.Signers, failed *source.VerificationError) (string, error) {
	for j := len(commits) - 1; j > i; j-- {
		if l.repo.Verify(commits[j].Hash, by) == nil {
			return "", fmt.Errorf("%w; later commits are signed, so nothing is folded: add its key to the signers, or begin the fold at a signed commit with the trailer Fairlead-Begin: true", failed)
		}
	}
	if i > 0 {
		return commits[i-1].Hash, failed
	}
	if commits[0].Parent == "" {
		return "", failed
	}

	// Its trailer would begin the fold, and has no say.
	to, err := l.verifiedEach(commits[0].Parent, by)
	if unsigned := (*source.VerificationError)(nil); err != nil && !errors.As(err, &unsigned) {
		return "", err
	}
	return to, failed
}
