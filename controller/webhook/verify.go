// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/hex"
	"hash"
	"io"
	"net/http"
	"strings"
)

// Type is how a forge signs what it sends.
type Type string

// The types, which are those of Flux's receivers.
const (
	GitHub      Type = "github"       // X-Hub-Signature-256: sha256=…
	GitLab      Type = "gitlab"       // X-Gitlab-Token, the token itself
	Gitea       Type = "gitea"        // X-Gitea-Signature or X-Forgejo-Signature: SHA-256
	Bitbucket   Type = "bitbucket"    // X-Hub-Signature: sha256=…
	Generic     Type = "generic"      // nothing: the path is the secret
	GenericHMAC Type = "generic-hmac" // X-Signature: sha256=…, sha384=… or sha512=…
)

// hashes are those that a signature may be made with. SHA-1 is not among them.
var hashes = map[string]func() hash.Hash{"sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New}

// verify reports whether a delivery is signed with the token. The body is read as a stream,
// in any case to its end.
func (h Hook) verify(header http.Header, body io.Reader) (bool, error) {
	switch h.Type {
	case GitHub:
		return h.hmac("sha256", header.Get("X-Hub-Signature-256"), body)
	case Bitbucket:
		return h.hmac("sha256", header.Get("X-Hub-Signature"), body)
	case Gitea:
		return h.hmac("sha256", "sha256="+giteaSignature(header), body)
	case GenericHMAC:
		kind, _, _ := strings.Cut(header.Get("X-Signature"), "=")
		return h.hmac(kind, header.Get("X-Signature"), body)
	case GitLab:
		return same(header.Get("X-Gitlab-Token"), h.Token), drain(body)
	case Generic:
		return true, drain(body)
	}
	return false, drain(body)
}

// giteaSignature is Gitea's, which Forgejo sends as well, or Forgejo's own.
func giteaSignature(header http.Header) string {
	if s := header.Get("X-Gitea-Signature"); s != "" {
		return s
	}
	return header.Get("X-Forgejo-Signature")
}

// hmac compares a signature "sha256=HEX" with that of the body.
func (h Hook) hmac(kind, signature string, body io.Reader) (bool, error) {
	newHash, known := hashes[kind]
	if !known {
		newHash = sha256.New
	}
	mac := hmac.New(newHash, []byte(h.Token))
	if _, err := io.Copy(mac, body); err != nil {
		return false, err
	}

	given, isOfKind := strings.CutPrefix(signature, kind+"=")
	sum, err := hex.DecodeString(given)
	return hmac.Equal(sum, mac.Sum(nil)) && known && isOfKind && err == nil, nil
}

// drain reads a body to its end, or to its limit.
func drain(body io.Reader) error {
	_, err := io.Copy(io.Discard, body)
	return err
}

// same compares two secrets without telling how long they are, or where they differ.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// isPing reports whether a delivery only tries the hook.
func (h Hook) isPing(header http.Header) bool {
	switch h.Type {
	case GitHub:
		return header.Get("X-Github-Event") == "ping"
	case Bitbucket:
		return header.Get("X-Event-Key") == "diagnostics:ping"
	}
	return false
}
