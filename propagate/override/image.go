// SPDX-License-Identifier: Apache-2.0

package override

import (
	"fmt"
	"regexp"
	"strings"
)

// image is a parsed reference: [registry[:port]/]repository[:tag][@digest]. It
// has either a tag or a digest, and the tag if the reference has both.
type image struct {
	registry, repository string
	tag, digest          string
}

var (
	repositoryPattern = regexp.MustCompile(`^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$`)
	registryPattern   = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::[0-9]+)?$`)
	tagPattern        = regexp.MustCompile(`^[\w][\w.-]{0,127}$`)
	digestPattern     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}$`)
)

func parseImage(reference string) (image, error) {
	var i image
	rest := reference
	if before, digest, ok := strings.Cut(rest, "@"); ok {
		if !digestPattern.MatchString(digest) {
			return i, fmt.Errorf("invalid image reference %q: bad digest", reference)
		}
		rest, i.digest = before, digest
	}

	if at := strings.LastIndex(rest, ":"); at > strings.LastIndex(rest, "/") {
		if !tagPattern.MatchString(rest[at+1:]) {
			return i, fmt.Errorf("invalid image reference %q: bad tag", reference)
		}
		rest, i.tag, i.digest = rest[:at], rest[at+1:], ""
	}

	// Only what looks like a host is one: docker's own rule.
	if first, path, ok := strings.Cut(rest, "/"); ok && (strings.ContainsAny(first, ".:") || first == "localhost") {
		if !registryPattern.MatchString(first) {
			return i, fmt.Errorf("invalid image reference %q: bad registry", reference)
		}
		i.registry, rest = first, path
	}

	if !repositoryPattern.MatchString(rest) {
		return i, fmt.Errorf("invalid image reference %q: bad repository", reference)
	}

	i.repository = rest
	return i, nil
}

func (i image) String() string {
	s := i.repository
	if i.registry != "" {
		s = i.registry + "/" + s
	}

	switch {
	case i.tag != "":
		return s + ":" + i.tag
	case i.digest != "":
		return s + "@" + i.digest
	}

	return s
}

// setVersion sets a tag or a digest, depending on what it looks like; anything
// else changes nothing.
func (i *image) setVersion(version string) {
	switch {
	case digestPattern.MatchString(version):
		i.tag, i.digest = "", version
	case tagPattern.MatchString(version):
		i.tag, i.digest = version, ""
	}
}

func (i image) version() string {
	if i.tag != "" {
		return i.tag
	}
	return i.digest
}
