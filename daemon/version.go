package daemon

import (
	"runtime/debug"
	"strings"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// next is the version that is being worked on: the first in CHANGELOG.md. Only a build of
// its tag calls itself so; every other one is a -dev of it.
const next = "0.2.0"

// The Makefile sets these: the commit as git describe names it, its digest, and its time in
// RFC 3339. A time of the build would make each build another program.
var described, commit, committed = "", "", ""

// Version is the version of this program: of what the Makefile built, else of what go
// install and go build have written down.
func Version() string {
	if described != "" {
		return describedVersion(described)
	}
	info, _ := debug.ReadBuildInfo()
	return builtVersion(info)
}

// Commit is the commit that this program was built from, with its time: of what the Makefile
// built, else of what go build has written down. Without version control both are empty.
func Commit() (digest, at string) {
	if commit != "" {
		return commit, committed
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				digest = s.Value
			case "vcs.time":
				at = s.Value
			}
		}
	}
	return digest, at
}

// release matches a tag, and nothing that git describe or go add to one.
var release = lazyregexp.New(`^v\d+\.\d+\.\d+(-(rc|beta|alpha)\.?\d+)?$`)

// describedVersion is the version of a commit: a tag's own, else a -dev of the next.
func describedVersion(commit string) string {
	if release().MatchString(commit) {
		return strings.TrimPrefix(commit, "v")
	}
	return next + "-dev-" + commit
}

// pseudo matches the version that go makes up for a commit that no tag comes before.
var pseudo = lazyregexp.New(`^v0\.0\.0-\d{14}-([0-9a-f]{7})[0-9a-f]{5}(\+dirty)?$`)

// builtVersion is the version that go install and go build have written down: the
// module's, else the commit's.
func builtVersion(info *debug.BuildInfo) string {
	const unknown = next + "-dev"
	if info == nil {
		return unknown
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		if m := pseudo().FindStringSubmatch(v); m != nil {
			return describedVersion(m[1] + strings.Replace(m[2], "+", "-", 1))
		}
		return strings.TrimPrefix(v, "v")
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 7 {
			return describedVersion(s.Value[:7])
		}
	}
	return unknown
}
