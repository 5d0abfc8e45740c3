package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

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
var npmValues = regexp.MustCompile(`^(?:[0-9]{1,6}|[a-z][a-z-]{0,15}|"?[~^]?"?)$`)

// npmScope is a scope of packages, and npmHost the host of a registry, with its port.
var (
	npmScope = regexp.MustCompile(`^@[0-9A-Za-z._-]+$`)
	npmHost  = regexp.MustCompile(`^(?:[0-9A-Za-z.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?$`)
)

// npmSegment is a part of a registry's path that is a name, such as "npm" and
// "npm-virtual". Some registries have the token there.
var (
	npmSegment = regexp.MustCompile(`^[a-z0-9._-]{1,24}$`)
	npmDigits  = regexp.MustCompile(`[0-9]{4}`)
)

// npmShown are the settings that are kept.
func npmShown(data []byte) []byte {
	var b strings.Builder
	for line := range strings.Lines(string(data)) {
		key, value, ok := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		scope, isScoped := strings.CutSuffix(key, ":registry")
		switch {
		case !ok:
		case key == "registry" || isScoped && npmScope.MatchString(scope):
			if npmRegistry(value) {
				fmt.Fprintf(&b, "%s=%s\n", key, value)
			}
		case slices.Contains(npmKept, key) && npmValues.MatchString(value):
			fmt.Fprintf(&b, "%s=%s\n", key, value)
		}
	}
	return []byte(b.String())
}

// npmRegistry reports whether the address of a registry holds no secret: it is a scheme, a
// host, a port and a path of names.
func npmRegistry(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || !npmHost.MatchString(u.Host) || address != u.Scheme+"://"+u.Host+u.Path {
		return false // what else it has is a user, a query, a fragment or a comment
	}
	path := strings.Trim(u.Path, "/")
	return path == "" || !slices.ContainsFunc(strings.Split(path, "/"), func(segment string) bool {
		return !npmSegment.MatchString(segment) || npmDigits.MatchString(segment)
	})
}
