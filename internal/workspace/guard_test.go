package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/hosttest"
	"github.com/yaya-ai/yaya/internal/workspace"
)

// SEC-4: yaya's own folders are not, do not contain and do not lie in a workspace.
func TestGuard(t *testing.T) {
	base := t.TempDir()
	at := func(parts ...string) string { return filepath.Join(append([]string{base}, parts...)...) }
	for _, dir := range []string{"home/state/yaya/keys", "home/project/sub", "home/.config", "moved/data"} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, from string) string {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
		return from
	}
	g, err := workspace.NewGuard(
		workspace.Own{Name: "data folder", Path: at("home/state/yaya"), Move: "--data-dir"},
		workspace.Own{Name: "configuration folder", Path: at("home/.config/yaya"), Move: "--config-dir"}, // not there yet
		workspace.Own{Name: "old folder", Path: link(at("moved/data"), at("way")), Move: "--data-dir"},
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(at("moved/data"), at("moved/elsewhere")); err != nil {
		t.Fatal(err)
	}
	pipe := at("pipe")
	hosttest.Pipe(t, pipe)
	for name, dir := range map[string]string{"a pipe": pipe, "nothing": ""} {
		if err := g.Check(dir); err == nil {
			t.Errorf("Check(%s) = nil, want an error at once", name)
		}
	}
	for _, tt := range []struct{ name, dir, want string }{
		{"a project", at("home/project"), ""},
		{"a folder beside", at("home/project/sub"), ""},
		{"the data folder", at("home/state/yaya"), "is its data folder"},
		{"below it", at("home/state/yaya/keys"), "lies in its data folder"},
		{"above it", at("home/state"), "contains its data folder: choose a folder below, or move that with --data-dir"},
		{"the home", at("home"), "contains its data folder"},
		{"everything", "/", "contains its data folder"},
		{"a link to it", link(at("home/state/yaya"), at("a")), "is its data folder"},
		{"a link to a folder below", link(at("home/state/yaya/keys"), at("b")), "lies in its data folder"},
		{"a way with a link in it", filepath.Join(link(at("home/state"), at("c")), "yaya/keys"), "lies in its data folder"},
		{"a link to one above", link(at("home"), at("d")), "contains its data folder"},
		{"a spelling", at("home/project/..//state/./yaya"), "is its data folder"},
		{"where the configuration will be", at("home/.config"), "contains its configuration folder"},
		{"one that was moved", at("moved/elsewhere"), "is its old folder"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := g.Check(tt.dir)
			if tt.want == "" {
				if err != nil {
					t.Errorf("Check(%s) = %v, want none", tt.dir, err)
				}
				return
			}
			if !errors.Is(err, workspace.ErrOwn) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Check(%s) = %v, want %q", tt.dir, err, tt.want)
			}
			if w, err := g.Open(tt.dir); err == nil {
				t.Errorf("Open(%s) opened it: %v", tt.dir, w.Close())
			}
		})
	}
}
