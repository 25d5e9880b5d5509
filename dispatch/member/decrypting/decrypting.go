// SPDX-License-Identifier: Apache-2.0

// Package decrypting wraps a member so that manifests are decrypted just before they are
// sent. Nobody else sees the plaintext: what is decided, recorded, compared and printed is
// the encrypted manifest and its digest.
package decrypting

import (
	"context"
	"errors"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// Decrypt returns a manifest as the cluster should have it, and a manifest in which nothing
// is encrypted as it is. Its errors quote no value.
type Decrypt func(manifest map[string]any) (map[string]any, error)

// Wrap is m with what it is sent decrypted. A manifest that cannot be decrypted is an
// error of its object, Invalid, and nothing of it is sent. What m is capable of shows
// through.
func Wrap(m member.Member, decrypt Decrypt) member.Member { return &decrypting{m, decrypt} }

type decrypting struct {
	member.Member
	decrypt Decrypt
}

func (d *decrypting) Unwrap() member.Member { return d.Member }

func (d *decrypting) Apply(ctx context.Context, manifest map[string]any, opt member.ApplyOptions) (member.Applied, error) {
	plain, err := d.decrypt(manifest)
	if err != nil {
		return member.Applied{}, &member.Error{Reason: member.Invalid, Err: err}
	}

	applied, err := d.Member.Apply(ctx, plain, opt)
	if err != nil && object.IsEncrypted(manifest) {
		err = withheld(err)
	}
	return applied, err
}

// withheld is an error without what the server said of an object: a webhook may quote what
// was decrypted. Of a Secret the member says nothing by itself.
func withheld(err error) error {
	var e *member.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Reason {
	case member.Invalid, member.Forbidden, member.Unavailable, member.Conflict:
		quiet := *e
		quiet.Err = errors.New("the answer is withheld, as it may quote what was decrypted")
		return &quiet
	}
	return err
}
