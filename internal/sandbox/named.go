package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// LinkError reports that a path goes through a symbolic link which nobody has agreed
// to.
type LinkError struct {
	Name string // the path
	Link string // the first link in it
	To   string // where the path leads now
}

func (e *LinkError) Error() string {
	return fmt.Sprintf("%s is a symbolic link, and the path leads to %s; if it is meant to, name that", e.Link, e.To)
}

// Real returns where a path leads, as far as it exists.
func Real(name string) string { return real(filepath.Clean(name)) }

// firstLink is the first part of an absolute path that is a symbolic link, "" without
// one.
func firstLink(name string) string {
	at := "/"
	for part := range strings.SplitSeq(strings.Trim(name, "/"), "/") {
		at = filepath.Join(at, part)
		if _, err := os.Readlink(at); err == nil {
			return at
		}
	}
	return ""
}

// Plain returns an absolute path without the symbolic links that belong to the system:
// those at the top of the file system, such as /bin and macOS's /tmp, and those in the
// path of the home folder. No program in a sandbox can put one there. Every other link
// stays in it.
func Plain(home, name string) string {
	name = filepath.Clean(name)
	if home = filepath.Clean(home); filepath.IsAbs(home) && home != "/" && inside.Covers(home, name) {
		return filepath.Join(real(home), strings.TrimPrefix(name, home))
	}
	top, rest, _ := strings.Cut(strings.TrimPrefix(name, "/"), "/")
	if to, err := os.Readlink("/" + top); err == nil && top != "" {
		if !filepath.IsAbs(to) {
			to = "/" + to
		}
		return filepath.Join(Real(to), rest)
	}
	return name
}

// OpenNamed opens all paths that the user named, or none. It follows only the links of
// [Plain]: a program with write access to a folder above could have created any other
// link since.
func OpenNamed(home string, names ...string) ([]Path, error) {
	var paths []Path
	for _, name := range names {
		p, err := OpenAgreed(name, Plain(home, name))
		if err != nil {
			return nil, errors.Join(err, Close(paths))
		}
		paths = append(paths, p)
	}
	return paths, nil
}

// OpenAgreed opens the path to which a name led at the time of the agreement. A
// program in the sandbox also finds it by its name.
func OpenAgreed(name, agreed string) (Path, error) {
	p, err := OpenExact(agreed)
	if err == nil {
		p.links = linksOf(filepath.Clean(name))
	}
	return p, err
}

// Credentials reports whether a path, without symbolic links, is or lies in what all
// profiles but guarded hide unless it is named.
func Credentials(home, name string) bool {
	return slices.ContainsFunc(samePaths(name), func(name string) bool { return hasCredentials(home, name) })
}

// hasCredentials is Credentials for one of several paths.
func hasCredentials(home, name string) bool {
	hidden := credentialPaths(home)
	for _, at := range hidden {
		if inside.Covers(at, name) || inside.Covers(real(at), name) {
			return true
		}
	}
	if Within(linkedCredentials(home, hidden, func(string) bool { return false }), name) {
		return true
	}
	for _, at := range ofRoot() {
		if inside.Covers(at, name) || inside.Covers(real(at), name) {
			return true
		}
	}
	return false
}

// CheckPath returns an error if a path cannot be granted to a sandbox, which has its own
// devices and processes: the host's would replace them, and none of the devices could be
// opened.
func CheckPath(name string) error {
	name = filepath.Clean(name)
	for _, at := range []string{"/dev", "/proc"} {
		if inside.Covers(at, name) && !inside.Covers("/dev/shm", name) {
			return &UngivenError{fmt.Sprintf("%s cannot be given to a sandbox, which has %s of its own: leave it out", name, at)}
		}
	}
	return nil
}
