// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// VerificationError says which commit no known key has signed, and why it counts as that.
type VerificationError struct {
	Commit string
	Key    string // which key says to have signed it; "" if it is not signed
	Reason string
}

// Error names the commit, the key and the reason.
func (e *VerificationError) Error() string {
	at := e.Commit[:min(8, len(e.Commit))]
	if e.Key == "" {
		return fmt.Sprintf("commit %s is not verified: %s", at, e.Reason)
	}
	return fmt.Sprintf("commit %s is not verified: signed by %s: %s", at, e.Key, e.Reason)
}

// Verify checks that a commit has the signature of one of the signers. The error is a
// *VerificationError if it has not; a signed tag that points to it makes no difference.
func (r *Repo) Verify(commit string, by Signers) error {
	h := plumbing.NewHash(commit)
	kind, raw, err := r.object(h)
	if err != nil {
		return fmt.Errorf("commit %s: %w", short(h), err)
	}
	if kind != plumbing.CommitObject {
		return fmt.Errorf("commit %s: is a %s, not a commit", short(h), kind)
	}
	if _, err := parseCommit(h, raw); err != nil {
		return &VerificationError{Commit: commit, Reason: err.Error()}
	}

	key, err := verify(raw, by)
	if err != nil {
		return &VerificationError{Commit: commit, Key: key, Reason: err.Error()}
	}
	return nil
}

// verify returns who says to have signed a commit, and why that does not count. Whoever
// pushes can write anything into a signature.
func verify(raw []byte, by Signers) (key string, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the signature cannot be read")
		}
	}()

	payload, signature, err := splitSignature(raw)
	if err != nil {
		return "", err
	}
	begins := strings.TrimSpace(string(signature))
	switch {
	case begins == "":
		return "", errors.New("it is not signed")
	case len(signature) > maxSignature:
		return "", fmt.Errorf("its signature is larger than %d bytes", maxSignature)
	case strings.HasPrefix(begins, "-----BEGIN PGP SIGNATURE-----"):
		return by.pgp.verify(payload, signature)
	case strings.HasPrefix(begins, "-----BEGIN SSH SIGNATURE-----"):
		return by.ssh.verify(payload, signature)
	}
	return "", errors.New("its signature is neither OpenPGP nor SSH")
}

// maxSignature limits a signature; those of the largest keys have about 4 KiB.
const maxSignature = 64 << 10

// splitSignature separates a commit from its signature: what is signed is the rest. The
// signature of its SHA-256 twin belongs to neither.
func splitSignature(raw []byte) (payload, signature []byte, err error) {
	headers, message, _ := bytes.Cut(raw, []byte("\n\n"))
	signatures, in := 0, ""
	for line := range bytes.Lines(append(bytes.Clone(headers), '\n')) {
		key, value, _ := bytes.Cut(line, []byte(" "))
		switch {
		case line[0] != ' ':
			in = string(key)
			if in == "gpgsig" {
				signatures++
			}
		default:
			value = line[1:]
		}

		switch in {
		case "gpgsig":
			signature = append(signature, value...)
		case "gpgsig-sha256":
		default:
			payload = append(payload, line...)
		}
	}

	if signatures > 1 {
		return nil, nil, errors.New("it has more than one signature")
	}
	payload = append(payload, '\n')
	return append(payload, message...), signature, nil
}
