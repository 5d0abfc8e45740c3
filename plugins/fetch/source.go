package fetch

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// Kind says which client fetches a source.
type Kind string

// The kinds of sources.
const (
	Git  Kind = "git"
	NPM  Kind = "npm"
	PyPI Kind = "pypi"
	Go   Kind = "go"
)

// Source names a package and a version of it.
type Source struct {
	Kind Kind
	Name string // of the package or module; the URL of a Git repository, as git takes it
	// Version is a version, a distribution tag of npm, or a tag, branch or commit of Git. "" is
	// the newest.
	Version string
}

// String returns the source as [Parse] takes it.
func (s Source) String() string {
	text := s.Name
	switch {
	case s.Kind != Git:
		text = string(s.Kind) + ":" + s.Name
	case strings.Contains(text, "://"):
		text = "git+" + text
	}
	if s.Version != "" {
		text += "@" + s.Version
	}
	return text
}

// At returns the source with another version.
func (s Source) At(version string) (Source, error) {
	s.Version = version
	return s, s.check()
}

// maxSource bounds the text of a source, in bytes.
const maxSource = 1000

var (
	npmName    = lazyregexp.New(`^(?:@[a-z0-9~][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*$`)
	pypiName   = lazyregexp.New(`^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	goName     = lazyregexp.New(`^[a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+)+(?:/[A-Za-z0-9~_-][A-Za-z0-9._~-]*)*$`)
	version    = lazyregexp.New(`^[0-9A-Za-z][0-9A-Za-z.+!_-]*$`)
	gitRef     = lazyregexp.New(`^[0-9A-Za-z](?:[0-9A-Za-z._+/-]*[0-9A-Za-z_+-])?$`)
	gitHost    = lazyregexp.New(`^[0-9A-Za-z](?:[0-9A-Za-z.-]*[0-9A-Za-z])?(?::[0-9]{1,5})?$`)
	gitShort   = lazyregexp.New(`^([0-9A-Za-z_][0-9A-Za-z_.-]*)@([0-9A-Za-z][0-9A-Za-z.-]*):([0-9A-Za-z_~./-]+)$`)
	gitUser    = lazyregexp.New(`^[0-9A-Za-z_][0-9A-Za-z_.-]*$`)
	gitProgram = lazyregexp.New(`^[\x21-\x7e]+$`)
)

// Parse reads a source such as npm:weather@1.2.0, pypi:weather, go:example.com/weather@v1.2.0,
// git+https://example.com/weather@v1, https://example.com/weather.git@v1 and
// git@example.com:weather.git@v1. It reports false for a text that can only be a path.
func Parse(text string) (s Source, remote bool, err error) {
	kind, rest, _ := strings.Cut(text, ":")
	switch {
	case kind == string(NPM), kind == string(PyPI), kind == string(Go):
		at := strings.LastIndexByte(rest, '@')
		if at <= 0 { // that of a scope of npm is its first byte
			at = len(rest)
		}
		s = Source{Kind: Kind(kind), Name: rest[:at], Version: strings.TrimPrefix(rest[at:], "@")}
		if strings.HasSuffix(rest, "@") {
			err = errors.New("there is no version behind @")
		}
	case strings.HasPrefix(text, "git+"), gitURL(text):
		s, err = parseGit(strings.TrimPrefix(text, "git+"))
	case strings.Contains(text, "://"):
		err = errors.New("a Git repository is git+https://…@TAG, or an address that ends in .git")
	default:
		return s, false, nil
	}
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return s, true, fmt.Errorf("source %.200q: %w", text, err)
	}
	return s, true, nil
}

// gitURL reports whether a text without git+ names a Git repository.
func gitURL(text string) bool {
	scheme, rest, found := strings.Cut(text, "://")
	if found {
		name, _, _ := cutRef(rest, "/")
		return scheme == "ssh" || scheme == "https" && strings.HasSuffix(name, ".git")
	}
	name, _, _ := cutRef(text, ":")
	return gitShort().MatchString(name)
}

// cutRef cuts the @ and what is behind it off an address, if that is behind the end of the host: an
// earlier one ends the name of a user.
func cutRef(address, end string) (name, ref string, found bool) {
	host := strings.Index(address, end)
	if at := strings.LastIndexByte(address, '@'); host >= 0 && at > host {
		return address[:at], address[at+1:], true
	}
	return address, "", false
}

func parseGit(text string) (Source, error) {
	scheme, rest, found := strings.Cut(text, "://")
	end := "/"
	if !found {
		rest, end = text, ":"
	}
	name, ref, versioned := cutRef(rest, end)
	if versioned && ref == "" {
		return Source{}, errors.New("there is no tag or commit behind @")
	}
	if found {
		name = scheme + "://" + name
	}
	return Source{Kind: Git, Name: name, Version: ref}, nil
}

func (s Source) check() error {
	if len(s.String()) > maxSource {
		return fmt.Errorf("more than %d bytes", maxSource)
	}
	named, versioned := npmName(), version()
	switch s.Kind {
	case NPM:
	case PyPI:
		named = pypiName()
	case Go:
		named = goName()
	case Git:
		versioned = gitRef()
		if err := checkGit(s.Name); err != nil {
			return err
		}
		named = gitProgram()
	}
	if !named.MatchString(s.Name) || s.Kind == Go && path.Clean(s.Name) != s.Name {
		return fmt.Errorf("%.200q is not the name of a package", s.Name)
	}
	if s.Version != "" && (!versioned.MatchString(s.Version) || strings.Contains(s.Version, "..") || strings.Contains(s.Version, "//")) {
		return fmt.Errorf("%.200q is not a version: name one exactly", s.Version)
	}
	return nil
}

// checkGit checks the address of a repository. Other protocols than these can run programs, or
// carry a password or the files unencrypted.
func checkGit(address string) error {
	if gitShort().MatchString(address) {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || !strings.Contains(address, "://") {
		return errors.New("not an address of a Git repository")
	}
	switch {
	case u.Scheme == "file":
		if u.Host != "" || !filepath.IsAbs(u.Path) {
			return errors.New("a repository in a folder is git+file:///…, with its whole path")
		}
		return nil
	case u.Scheme != "https" && u.Scheme != "ssh":
		return fmt.Errorf("a Git repository is reached by https, ssh or file, and not by %.20q", u.Scheme)
	case !gitHost().MatchString(u.Host):
		return fmt.Errorf("%.200q is not the name of a host", u.Host)
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("the address of a repository has no ? and no #")
	}
	if u.User == nil {
		return nil
	}
	if _, has := u.User.Password(); has || u.Scheme == "https" {
		return errors.New("the address would keep a password or token in the clear: set up a credential helper of Git, or use ssh")
	}
	if !gitUser().MatchString(u.User.Username()) {
		return fmt.Errorf("%.200q is not the name of a user", u.User.Username())
	}
	return nil
}
