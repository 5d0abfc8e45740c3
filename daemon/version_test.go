package daemon

import (
	"os"
	"regexp"
	"runtime/debug"
	"testing"
)

// USE-7: yaya knows its version however it was built.
func TestBuiltVersion(t *testing.T) {
	revision := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123456789abcdef"}}
	for _, tc := range []struct {
		name string
		info *debug.BuildInfo
		want string
	}{
		{"go install of a release", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "1.2.3"},
		{"go install of a commit after a release", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.4-0.20260101000000-0123456789ab"}}, "1.2.4-0.20260101000000-0123456789ab"},
		{"go install of a commit before all releases", &debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-20260101000000-0123456789ab"}}, next + "-dev-0123456"},
		{"go build in a changed clone", &debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-20260101000000-0123456789ab+dirty"}}, next + "-dev-0123456-dirty"},
		{"go build in a clone, named by its commit", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: revision}, next + "-dev-0123456"},
		{"without version control", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, next + "-dev"},
		{"without anything", nil, next + "-dev"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := builtVersion(tc.info); got != tc.want {
				t.Errorf("builtVersion = %q, want %q", got, tc.want)
			}
		})
	}
}

// Only a build of a tag is a release.
func TestDescribedVersion(t *testing.T) {
	for _, tc := range []struct{ name, commit, want string }{
		{"a release", "v1.2.3", "1.2.3"},
		{"a release candidate", "v1.2.3-rc.1", "1.2.3-rc.1"},
		{"a changed release", "v1.2.3-dirty", next + "-dev-v1.2.3-dirty"},
		{"commits after a release", "v1.2.3-4-g0123456", next + "-dev-v1.2.3-4-g0123456"},
		{"a commit", "0123456", next + "-dev-0123456"},
		{"a changed clone", "0123456-dirty", next + "-dev-0123456-dirty"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := describedVersion(tc.commit); got != tc.want {
				t.Errorf("describedVersion(%q) = %q, want %q", tc.commit, got, tc.want)
			}
		})
	}
}

// The version that is being worked on is the one that the changelog collects changes for.
func TestNextVersionIsTheChangelogs(t *testing.T) {
	changes, err := os.ReadFile("../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	first := regexp.MustCompile(`(?m)^## (\S+)`).FindSubmatch(changes)
	if first == nil || string(first[1]) != next {
		t.Errorf("the first version in CHANGELOG.md is %q, want %q", first, next)
	}
}
