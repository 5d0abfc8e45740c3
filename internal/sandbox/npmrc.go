package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// maxNpmrc bounds what is read of the user's settings of npm, in bytes.
const maxNpmrc = 64 << 10

// npmKept are settings of npm and pnpm that a sandbox keeps: none is a secret. So are
// registries; all else may be one, or name a program.
var npmKept = []string{
	"audit", "auto-install-peers", "engine-strict", "fund", "hoist", "ignore-scripts", "include", "install-strategy", "legacy-peer-deps", "lockfile", "node-linker", "omit",
	"package-lock", "prefer-offline", "save-exact", "save-prefix", "shamefully-hoist", "strict-peer-dependencies", "strict-peer-deps",
}

// npmrc shows the user's settings of npm without those that may be secrets, where the
// file is hidden: a file that cannot be read ends Yarn, and has npm install from another
// registry than the user's.
func (r *Run) npmrc(s *rules, plan *inside.Plan) error {
	at := real(filepath.Join(r.policy.Home, ".npmrc"))
	if !plan.Mounts || inside.Effective(inside.Sort(s.all), at, plan.Otherwise()) != inside.Hide {
		return nil
	}
	data, err := readStored(at, maxNpmrc)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, errNotRegular) {
		return nil // nothing that npm would read
	}
	if err != nil {
		return fmt.Errorf("settings of npm: %w", err)
	}
	// Beside the cache, where no program in a sandbox puts another one in its place.
	shown := real(r.policy.Cache) + "-npmrc"
	if err := store(shown, npmShown(data)); err != nil {
		return fmt.Errorf("settings of npm: %w", err)
	}
	s.all = append(s.all, inside.Rule{Path: at, Access: inside.Read, From: shown})
	return nil
}

// npmValues matches the value of a kept setting of npm: a switch, a number or a plain short
// word, and how versions are saved. All else may be a secret, even behind such a word.
var npmValues = lazyregexp.New(`^(?:[0-9]{1,6}|[a-z][a-z-]{0,15}|"?[~^]?"?)$`)

// npmScope is a scope of packages, and npmHost the host of a registry, with its port.
var (
	npmScope = lazyregexp.New(`^@[0-9A-Za-z._-]+$`)
	npmHost  = lazyregexp.New(`^(?:[0-9A-Za-z.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?$`)
)

// npmSegment is a part of a registry's path that is a name, such as "npm" and
// "npm-virtual". Some registries have the token there.
var (
	npmSegment = lazyregexp.New(`^[a-z0-9._-]{1,24}$`)
	npmDigits  = lazyregexp.New(`[0-9]{4}`)
)

// npmNowhere is an address that leads nowhere (RFC 2606), for a scope whose registry a sandbox
// does not show: without one npm would take the packages of the scope from the public registry,
// where anybody can offer others under their names.
const npmNowhere = "https://yaya-hides-the-registry-of-this-scope.invalid/"

// npmScripts is the setting that keeps packages from running programs when they are installed.
const npmScripts = "ignore-scripts"

// npmShown are the settings that are kept.
func npmShown(data []byte) []byte {
	var b strings.Builder
	for line := range strings.FieldsFuncSeq(string(data), func(r rune) bool { return r == '\n' || r == '\r' }) {
		if npmSection().MatchString(line) {
			break // npm reads nothing behind it as a setting of its own
		}
		key, value, ok := npmSetting(line)
		scope, isScoped := strings.CutSuffix(key, ":registry")
		isScoped = isScoped && npmScope().MatchString(scope)
		switch {
		case key == "registry" || isScoped:
			switch {
			case ok && npmRegistry(value):
				fmt.Fprintf(&b, "%s=%s\n", key, value)
			case isScoped && value != "":
				fmt.Fprintf(&b, "; yaya hides the registry of this scope, whose address may hold a secret\n%s=%s\n", key, npmNowhere)
			}
		case slices.Contains(npmKept, strings.TrimSuffix(key, "[]")):
			switch {
			case ok && npmValues().MatchString(value):
				fmt.Fprintf(&b, "%s=%s\n", key, value)
			case key == npmScripts && value != "": // rather no scripts than those that were forbidden
				fmt.Fprintf(&b, "%s=true\n", key)
			}
		}
	}
	return []byte(b.String())
}

// npmSection matches the heading of a section.
var npmSection = lazyregexp.New(`^\s*\[[^\]]*\]\s*$`)

// npmSetting reads a line as npm does: a setting without a value is true, and ; and # begin a
// comment, except within quotes. A value with an escape is never shown.
func npmSetting(line string) (key, value string, ok bool) {
	key, value, has := strings.Cut(line, "=")
	if key = strings.TrimSpace(key); key == "" || key[0] == ';' || key[0] == '#' {
		return "", "", false
	}
	value = strings.TrimSpace(value)
	if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		value = value[1 : n-1]
	} else if i := strings.IndexAny(value, `;#\`); i >= 0 && value[i] != '\\' {
		value = strings.TrimSpace(value[:i])
	}
	if !has {
		value = "true"
	}
	return key, value, !strings.ContainsRune(value, '\\')
}

// npmRegistry reports whether the address of a registry holds no secret: it is a scheme, a
// host, a port and a path of names.
func npmRegistry(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || !npmHost().MatchString(u.Host) || address != u.Scheme+"://"+u.Host+u.Path {
		return false // what else it has is a user, a query, a fragment or a comment
	}
	path := strings.Trim(u.Path, "/")
	return path == "" || !slices.ContainsFunc(strings.Split(path, "/"), func(segment string) bool {
		return !npmSegment().MatchString(segment) || npmDigits().MatchString(segment)
	})
}
