package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A key or a file of the configuration that has a second name is found, and the warning
// names it and what to do.
func TestLinked(t *testing.T) {
	p := otherYaya(t, t.TempDir(), "one")
	key, config, target := filepath.Join(p.Data, "keys", "server.key"), filepath.Join(p.Config, "mcp.json"), filepath.Join(p.Home, "mcp.json")
	if err := errors.Join(os.WriteFile(key, nil, 0o600), os.WriteFile(target, nil, 0o600), os.Symlink(target, config)); err != nil {
		t.Fatal(err)
	}
	if got := p.hardLinked(nil); got != nil || linkedWarning(got) != "" {
		t.Errorf("linked = %q, want none", got)
	}
	if err := errors.Join(os.Link(key, filepath.Join(p.Home, "key")), os.Link(target, filepath.Join(p.Home, "other"))); err != nil {
		t.Fatal(err)
	}
	named := []string{target, filepath.Join(p.Home, "none")}
	if got, want := p.hardLinked(named), []string{config, key, target}; !slices.Equal(got, want) {
		t.Errorf("linked = %q, want %q", got, want)
	}
	d, is := (&stores{at: &place{Paths: p}}).linkedDiagnosis()
	for _, want := range []string{config + " has another name", "of 1 other file", "find / -xdev -samefile " + config} {
		if !is || !strings.Contains(d.Summary, want) {
			t.Errorf("the diagnosis is %q, want %q in it", d.Summary, want)
		}
	}
}
