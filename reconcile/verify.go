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
	// Accepted is a commit that was folded before, as somebody remembers who has not lost
	// the state: a Fleet's status. It is used while nothing is folded. It and what is before
	// it are not asked again, since a key may have expired or been taken away since.
	Accepted string
}

// VerifyMode is which commits must be signed.
type VerifyMode string

// The modes. Only commits after what was folded are asked. While nothing is folded, and
// nobody remembers what was, nothing is folded until all that a mode asks for are signed:
// the clusters may have what comes later, and must not be brought back behind it.
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
	if v.Mode == "" {
		return head, nil
	}
	commits, accepted, err := l.unverified(head, v.Accepted)
	if err != nil {
		return "", err
	}

	switch v.Mode {
	case VerifyHead:
		if len(commits) == 0 {
			return head, nil
		}
		if err := l.repo.Verify(head, v.Signers); err != nil {
			return accepted, l.notBegun(accepted, err)
		}
		return head, nil
	case VerifyEachCommit:
		for _, c := range commits {
			if err := l.repo.Verify(c.Hash, v.Signers); err != nil {
				return accepted, l.notBegun(accepted, err)
			}
			if l.state.Commit != "" || accepted != "" {
				accepted = c.Hash
			}
		}
		return head, nil
	}
	return "", fmt.Errorf("verification mode %q is neither %s nor %s", v.Mode, VerifyHead, VerifyEachCommit)
}

// unverified returns the commits up to head that nobody has asked for a signature, oldest
// first, and up to which the fold may go without them; "" is not at all.
func (l *Loop) unverified(head, remembered string) (commits []*source.Commit, accepted string, err error) {
	if l.state.Commit == "" && remembered != "" && l.repo.Has(remembered) {
		commits, err := l.history.Commits(remembered, head)
		if !errors.Is(err, source.ErrNotAncestor) {
			return commits, remembered, err
		}
	}

	since := l.state.Commit
	if since != "" && !l.repo.Has(since) {
		since = ""
	}
	commits, err = l.history.Commits(since, head)
	if errors.Is(err, source.ErrNotAncestor) {
		commits, err = l.history.Commits("", head) // a rewritten branch is folded from its beginning
	}
	return commits, "", err
}

// notBegun says of a fold that cannot begin how it can.
func (l *Loop) notBegun(accepted string, err error) error {
	var failed *source.VerificationError
	if l.state.Commit != "" || accepted != "" || !errors.As(err, &failed) {
		return err
	}
	return fmt.Errorf("%w; nothing was folded before, so nothing is: add its key to the signers, or begin at a signed commit with the trailer Fairlead-Begin: true", err)
}
