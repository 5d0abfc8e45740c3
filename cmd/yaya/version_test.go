package main

import (
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
		{"go install of a commit", &debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-20260101000000-0123456789ab"}}, "0.0.0-20260101000000-0123456789ab"},
		{"go build in a clone", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: revision}, "0.1.0-dev-0123456"},
		{"without version control", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "0.1.0-dev"},
		{"without anything", nil, "0.1.0-dev"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := builtVersion(tc.info); got != tc.want {
				t.Errorf("builtVersion = %q, want %q", got, tc.want)
			}
		})
	}
}
