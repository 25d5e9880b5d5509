// SPDX-License-Identifier: Apache-2.0

package decrypting_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/member/decrypting"
)

// cluster is a member that records what it is sent.
type cluster struct {
	member.Member
	sent []map[string]any
	err  error
}

func (c *cluster) Apply(_ context.Context, manifest map[string]any, _ member.ApplyOptions) (member.Applied, error) {
	c.sent = append(c.sent, manifest)
	return member.Applied{}, c.err
}

func (c *cluster) HasIdentity() {}

func open(manifest map[string]any) (map[string]any, error) {
	switch {
	case manifest["sops"] == nil:
		return manifest, nil
	case manifest["kind"] == "Locked":
		return nil, errors.New("none of the given keys can open it")
	}
	return map[string]any{"kind": manifest["kind"], "spec": "canary"}, nil
}

func TestApply(t *testing.T) {
	encrypted := func(kind string) map[string]any {
		return map[string]any{"kind": kind, "spec": "ENC", "sops": map[string]any{}}
	}
	answer := func(reason member.Reason) error {
		return &member.Error{Reason: reason, Err: errors.New("webhook: canary is weak")}
	}
	for name, test := range map[string]struct {
		manifest map[string]any
		answer   error
		sent     any // spec
		err      string
		reason   member.Reason
	}{
		"decrypted":                {encrypted("Thing"), nil, "canary", "", ""},
		"not encrypted":            {map[string]any{"spec": "plain"}, nil, "plain", "", ""},
		"for another key":          {encrypted("Locked"), nil, nil, "none of the given keys can open it", member.Invalid},
		"refused":                  {encrypted("Thing"), answer(member.Invalid), "canary", "the answer is withheld", member.Invalid},
		"refused by a webhook":     {encrypted("Thing"), answer(member.Forbidden), "canary", "the answer is withheld", member.Forbidden},
		"no answer":                {encrypted("Thing"), &member.Error{Reason: member.Unreachable, Err: errors.New("EOF")}, "canary", "EOF", member.Unreachable},
		"refused, not encrypted":   {map[string]any{"spec": "plain"}, answer(member.Invalid), "plain", "webhook: canary", member.Invalid},
		"an error of another kind": {encrypted("Thing"), context.Canceled, "canary", "context canceled", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inner := &cluster{err: test.answer}
			_, err := decrypting.Wrap(inner, open).Apply(t.Context(), test.manifest, member.ApplyOptions{})
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) || test.reason != "" && !errors.Is(err, test.reason) {
				t.Error(err)
			}
			if test.sent == nil && len(inner.sent) > 0 || test.sent != nil && inner.sent[0]["spec"] != test.sent {
				t.Errorf("sent %v", inner.sent)
			}
		})
	}
}

// What the member inside can do shows through.
func TestCapabilities(t *testing.T) {
	if !member.Is[member.Identified](decrypting.Wrap(&cluster{}, open)) || member.Is[member.ReadOnly](decrypting.Wrap(&cluster{}, open)) {
		t.Error("capabilities differ")
	}
}
