// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead/fairlead/change"
	"github.com/fairlead/fairlead/source"
)

var nameAndMail = regexp.MustCompile(`^([^<>\n]*[^<>\n\s])\s*<([^<>\n\s]+)>$`)

var errNobody = errors.New("the author is unknown: set user.name and user.email in git's configuration, or specify --author 'Name <mail>'")

// findAuthor asks the flag, then git's environment, then its configuration.
func findAuthor(flag string, repo *source.Repo) (change.Author, error) {
	when, err := gitDate(cmp.Or(os.Getenv("GIT_AUTHOR_DATE"), os.Getenv("GIT_COMMITTER_DATE")))
	if err != nil {
		return change.Author{}, err
	}

	if flag != "" {
		m := nameAndMail.FindStringSubmatch(strings.TrimSpace(flag))
		if m == nil {
			return change.Author{}, usagef("--author %q does not read 'Name <mail>'", flag)
		}
		return change.Author{Name: m[1], Mail: m[2], When: when}, nil
	}
	name, mail := os.Getenv("GIT_AUTHOR_NAME"), os.Getenv("GIT_AUTHOR_EMAIL")
	if name == "" || mail == "" {
		configured, address, err := repo.User()
		if err != nil {
			return change.Author{}, err
		}
		name, mail = cmp.Or(name, configured), cmp.Or(mail, address)
	}
	a := change.Author{Name: clean(name), Mail: clean(mail), When: when}
	if a.Name == "" || a.Mail == "" {
		return a, errNobody
	}

	return a, nil
}

// clean leaves out what would break the line of a commit.
func clean(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(c rune) rune {
		if c == '<' || c == '>' || c < ' ' {
			return ' '
		}
		return c
	}, s)), " ")
}

var secondsAndZone = regexp.MustCompile(`^@?(\d+)(?: ([+-])(\d\d)(\d\d))?$`)

// gitDate reads the dates that git's environment has: seconds and a zone,
// RFC 2822 or ISO 8601. Without one it is now.
func gitDate(text string) (time.Time, error) {
	if text == "" {
		return time.Now(), nil
	}

	if m := secondsAndZone.FindStringSubmatch(text); m != nil {
		seconds, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			return time.Time{}, fmt.Errorf("date %q: %w", text, err)
		}
		zone := time.UTC
		if m[2] != "" {
			hours, _ := strconv.Atoi(m[3])
			minutes, _ := strconv.Atoi(m[4])
			offset := hours*3600 + minutes*60
			if m[2] == "-" {
				offset = -offset
			}
			zone = time.FixedZone("", offset)
		}
		return time.Unix(seconds, 0).In(zone), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05-0700", "2006-01-02 15:04:05 -0700", time.RFC1123Z, "Mon, 2 Jan 2006 15:04:05 -0700", "2006-01-02T15:04:05", "2006-01-02 15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}

	return time.Time{}, fmt.Errorf("GIT_AUTHOR_DATE %q is not a supported date", text)
}
