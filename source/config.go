// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"
)

// config reads the user's git configuration as git does: the system's, the
// user's, the repository's. Only edits need it; a fleet is read without it.
func (r *Repo) config() (*config.Config, error) {
	all := config.New()
	for _, file := range r.configFiles() {
		if err := r.include(all, file, 0); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (r *Repo) configFiles() []string {
	var files []string
	if os.Getenv("GIT_CONFIG_NOSYSTEM") == "" {
		file := "/etc/gitconfig"
		if other, ok := os.LookupEnv("GIT_CONFIG_SYSTEM"); ok {
			file = other
		}
		files = append(files, file)
	}

	if file, ok := os.LookupEnv("GIT_CONFIG_GLOBAL"); ok {
		files = append(files, file)
	} else {
		xdg := os.Getenv("XDG_CONFIG_HOME")
		if xdg == "" {
			xdg = inHome("~/.config")
		}
		files = append(files, filepath.Join(xdg, "git", "config"), inHome("~/.gitconfig"))
	}

	return append(files, filepath.Join(r.common, "config"))
}

func inHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}

// maxIncludes limits the depth of includes, as in git.
const maxIncludes = 10

// include adds a file, followed by the files that it includes.
func (r *Repo) include(all *config.Config, file string, depth int) error {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	if err != nil {
		return fmt.Errorf("git configuration: %w", err)
	}
	defer f.Close()

	one := config.New()
	if err := config.NewDecoder(f).Decode(one); err != nil {
		return fmt.Errorf("git configuration %s: %w", file, err)
	}

	for _, s := range one.Sections {
		for _, o := range s.Options {
			all.AddOption(s.Name, config.NoSubsection, o.Key, o.Value)
		}
		for _, sub := range s.Subsections {
			for _, o := range sub.Options {
				all.AddOption(s.Name, sub.Name, o.Key, o.Value)
			}
		}
	}

	if depth == maxIncludes {
		return fmt.Errorf("git configuration %s: included %d deep", file, depth)
	}

	var paths []string
	for _, s := range one.Sections {
		switch {
		case strings.EqualFold(s.Name, "include"):
			paths = append(paths, s.Options.GetAll("path")...)
		case strings.EqualFold(s.Name, "includeIf"):
			for _, sub := range s.Subsections {
				if r.matchesGitDir(sub.Name, file) {
					paths = append(paths, sub.Options.GetAll("path")...)
				}
			}
		}
	}

	for _, path := range paths {
		if err := r.include(all, from(filepath.Dir(file), inHome(path)), depth+1); err != nil {
			return err
		}
	}

	return nil
}

// matchesGitDir reports whether an includeIf condition "gitdir:PATTERN" matches
// the repository. Other conditions never match.
func (r *Repo) matchesGitDir(condition, file string) bool {
	kind, pattern, _ := strings.Cut(condition, ":")
	if kind != "gitdir" && kind != "gitdir/i" {
		return false
	}

	if rest, ok := strings.CutPrefix(pattern, "./"); ok {
		pattern = filepath.Join(filepath.Dir(file), rest) + map[bool]string{true: "/"}[strings.HasSuffix(rest, "/")]
	}

	ends := strings.HasSuffix(pattern, "/")
	if pattern = inHome(pattern); ends {
		pattern = strings.TrimSuffix(pattern, "/") + "/**"
	}
	if !filepath.IsAbs(pattern) {
		pattern = "**/" + pattern
	}

	expression := regexp.QuoteMeta(pattern)
	expression = strings.ReplaceAll(expression, `\*\*/`, `(.*/)?`)
	expression = strings.ReplaceAll(expression, `\*\*`, `.*`)
	expression = strings.ReplaceAll(expression, `\*`, `[^/]*`)
	expression = strings.ReplaceAll(expression, `\?`, `[^/]`)
	if kind == "gitdir/i" {
		expression = "(?i)" + expression
	}

	dir, err := filepath.Abs(r.gitDir)
	if err != nil {
		return false
	}

	re, err := regexp.Compile("^" + expression + "$")
	return err == nil && re.MatchString(dir)
}

// User is the committer in the user's git configuration; a part that is not
// configured is empty.
func (r *Repo) User() (name, mail string, err error) {
	c, err := r.config()
	if err != nil {
		return "", "", err
	}
	user := c.Section("user")
	return user.Options.Get("name"), user.Options.Get("email"), nil
}

// Origin is where a mirror comes from, or where a repository that was opened in place
// pushes to; "" if that is not known.
func (r *Repo) Origin() string {
	if remote := r.Remote(); remote != "" {
		return remote
	}
	address, err := r.origin()
	if err != nil {
		return ""
	}
	return address
}

// origin is the push address of the remote called origin; "" if there is none.
func (r *Repo) origin() (string, error) {
	c, err := r.config()
	if err != nil {
		return "", err
	}

	remote := c.Section("remote").Subsection("origin")
	if address := remote.Options.Get("pushurl"); address != "" {
		return insteadOf(c, address, "insteadOf"), nil
	}

	address := remote.Options.Get("url")
	if other := insteadOf(c, address, "pushInsteadOf"); other != address {
		return other, nil
	}

	return insteadOf(c, address, "insteadOf"), nil
}

// insteadOf rewrites an address by the url.BASE.insteadOf with the longest
// matching prefix.
func insteadOf(c *config.Config, address, key string) string {
	longest, result := "", address
	for _, base := range c.Section("url").Subsections {
		for _, prefix := range base.Options.GetAll(key) {
			if len(prefix) > len(longest) && strings.HasPrefix(address, prefix) {
				longest, result = prefix, base.Name+address[len(prefix):]
			}
		}
	}

	return result
}
