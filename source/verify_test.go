// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

func signers(t *testing.T, keys ...*sourcetest.Key) source.Signers {
	t.Helper()
	files := map[string][]byte{}
	for _, k := range keys {
		files[k.File] = append(files[k.File], k.Public...)
	}
	s, err := source.ParseSigners(files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// T09: a commit counts as signed by the keys that are known, and by nothing else; an error
// says by which commit, which key and why.
func TestT09Signatures(t *testing.T) {
	g := sourcetest.New(t)
	g.Commit("one", map[string]string{"a": "1"})
	ada, bob, stranger := sourcetest.NewPGPKey(t, sourcetest.Good), sourcetest.NewSSHKey(t, "git"), sourcetest.NewSSHKey(t, "git")
	host := sourcetest.NewPGPKey(t, sourcetest.Good)
	expired, revoked := sourcetest.NewPGPKey(t, sourcetest.Expired), sourcetest.NewPGPKey(t, sourcetest.Revoked)
	unfit, forFiles := sourcetest.NewPGPKey(t, sourcetest.NotToSign), sourcetest.NewSSHKey(t, "file")
	known := signers(t, ada, bob, expired, revoked, unfit, forFiles)
	sign := func(key *sourcetest.Key) func() string {
		return func() string {
			g.Commit("two", map[string]string{"a": "2"})
			return g.Sign(key)
		}
	}

	for name, c := range map[string]struct {
		commit  func() string
		key     string
		want    string
		nothing bool // no signers are known
	}{
		"OpenPGP":         {commit: sign(ada)},
		"SSH":             {commit: sign(bob)},
		"nobody":          {commit: func() string { return g.Commit("two", nil) }, want: "it is not signed"},
		"an unknown key":  {commit: sign(stranger), key: "SSH key " + stranger.ID, want: "the key is not known"},
		"no known keys":   {commit: sign(ada), nothing: true, key: "OpenPGP key " + ada.ID, want: "the key is not known"},
		"an expired key":  {commit: sign(expired), key: "OpenPGP key " + expired.ID, want: "the key has expired"},
		"a revoked key":   {commit: sign(revoked), key: "OpenPGP key " + revoked.ID, want: "the key is revoked"},
		"no signing key":  {commit: sign(unfit), key: "OpenPGP key " + unfit.ID, want: "the key is not for signing"},
		"another purpose": {commit: sign(forFiles), key: "SSH key " + forFiles.ID, want: "the signature is for another purpose"},
		"another commit": {commit: func() string {
			sign(ada)()
			raw := g.Git("cat-file", "commit", "HEAD")
			_, rest, _ := strings.Cut(raw, "gpgsig ")
			signature, _, _ := strings.Cut(rest, "\n\n")
			g.Commit("three", map[string]string{"a": "3"})
			return g.SignHead(strings.ReplaceAll(signature, "\n ", "\n"))
		}, key: "OpenPGP key " + ada.ID, want: "the signature does not fit the commit"},
		"two signatures": {commit: func() string { sign(ada)(); return g.Sign(ada) }, want: "it has more than one signature"},
		"neither kind":   {commit: func() string { g.Commit("two", nil); return g.SignHead("-----BEGIN SIGNED MESSAGE-----\nx") }, want: "its signature is neither OpenPGP nor SSH"},
		"broken OpenPGP": {commit: func() string { g.Commit("two", nil); return g.SignHead("-----BEGIN PGP SIGNATURE-----\n\nxx") }, want: "its OpenPGP signature cannot be read"},
		"broken SSH":     {commit: func() string { g.Commit("two", nil); return g.SignHead("-----BEGIN SSH SIGNATURE-----\nxx") }, want: "its SSH signature cannot be read"},
		"a large one":    {commit: func() string { g.Commit("two", nil); return g.SignHead(strings.Repeat("x", 70000)) }, want: "larger than"},
		"a merge by the forge": {commit: func() string {
			g.Branch("topic")
			sign(ada)()
			g.Checkout("main")
			g.Merge("topic", "Merge topic")
			g.Git("branch", "-D", "topic")
			return g.Sign(host)
		}, key: "OpenPGP key " + host.ID, want: "the key is not known"},
		"only a tag": {commit: func() string {
			head := g.Commit("two", nil)
			g.Git("tag", "-f", "-a", "-m", "v1\n-----BEGIN PGP SIGNATURE-----", "v1")
			return head
		}, want: "it is not signed"},
	} {
		t.Run(name, func(t *testing.T) {
			commit, by := c.commit(), known
			if c.nothing {
				by = source.Signers{}
			}
			r, err := source.Open(g.Dir)
			if err != nil {
				t.Fatal(err)
			}

			err = r.Verify(commit, by)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var failed *source.VerificationError
			if !errors.As(err, &failed) || failed.Commit != commit || failed.Key != c.key || !strings.Contains(failed.Reason, c.want) {
				t.Fatalf("got %v (key %q), want %s", err, c.key, c.want)
			}
			if !strings.Contains(err.Error(), "commit "+commit[:8]) || !strings.Contains(err.Error(), c.key) {
				t.Errorf("it reads %v", err)
			}
		})
	}
}

func TestParseSigners(t *testing.T) {
	ada, bob, private := sourcetest.NewPGPKey(t, sourcetest.Good), sourcetest.NewSSHKey(t, "git"), sourcetest.NewPGPKey(t, sourcetest.WithPrivate)
	commented := append([]byte("# ours\n\n"), bob.Public...)
	for name, c := range map[string]struct {
		files map[string][]byte
		count int
		wrong string
	}{
		"one of each":       {files: map[string][]byte{"a.asc": ada.Public, "b.sshpub": bob.Public}, count: 2},
		"two in a file":     {files: map[string][]byte{"a.asc": append(append([]byte{}, ada.Public...), ada.Public...), "b.sshpub": append(commented, bob.Public...)}, count: 4},
		"no key":            {files: map[string][]byte{"a.asc": []byte("hunter2")}, wrong: "a.asc: it has no armored OpenPGP key"},
		"a broken key":      {files: map[string][]byte{"a.asc": []byte("-----BEGIN PGP PUBLIC KEY BLOCK-----\nhunter2")}, wrong: "a.asc: it is not an armored OpenPGP key"},
		"a private key":     {files: map[string][]byte{"a.asc": private.Public}, wrong: "a.asc: it has a private key"},
		"no SSH key":        {files: map[string][]byte{"b.sshpub": []byte("# hunter2\n")}, wrong: "b.sshpub: it has no SSH public key"},
		"a broken SSH key":  {files: map[string][]byte{"b.sshpub": []byte("\nssh-ed25519 hunter2")}, wrong: "b.sshpub: line 2 is not an SSH public key"},
		"an SSH authority":  {files: map[string][]byte{"b.sshpub": append([]byte("cert-authority "), bob.Public...)}, wrong: "b.sshpub: line 1 has options"},
		"what nobody knows": {files: map[string][]byte{"c.pub": bob.Public}, wrong: "c.pub: its name ends neither"},
	} {
		s, err := source.ParseSigners(c.files)
		switch {
		case c.wrong == "" && (err != nil || s.Len() != c.count):
			t.Errorf("%s: %d keys, %v", name, s.Len(), err)
		case c.wrong != "" && (err == nil || !strings.HasPrefix(err.Error(), c.wrong) || strings.Contains(err.Error(), "hunter2")):
			t.Errorf("%s: got %v", name, err)
		}
	}
}
