package archtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// COD-11: the map of folders in the README names folders that exist, and every package
// of the layers that a newcomer looks into.
func TestReadmeMapsFolders(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(data), "\n## Folders\n")
	if !found {
		t.Fatal("README.md has no section Folders")
	}
	var named []string
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
				named = append(named, m[1])
			}
		}
	}
	for _, dir := range named {
		if info, err := os.Stat(filepath.Join(root, dir)); err != nil || !info.IsDir() {
			t.Errorf("README.md maps %s: got %v, want a folder", dir, err)
		}
	}
	alone := []string{"examples", "internal", "plugins"} // one line for all packages below
	looked := 0
	for _, p := range packages(t) {
		dir := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if dir == "" || len(p.GoFiles) == 0 {
			continue
		}
		parts := strings.Split(dir, "/")
		if slices.Contains(alone, parts[0]) {
			dir = parts[0]
		} else {
			dir = strings.Join(parts[:min(len(parts), 2)], "/")
		}
		if looked++; !slices.Contains(named, dir) {
			t.Errorf("README.md maps %v, want %s among it", named, dir)
		}
	}
	if looked < 50 {
		t.Errorf("%d packages were looked at, want all", looked)
	}
}

// COD-11: make help lists every target with a sentence; make alone still runs yaya.
func TestMakeHelp(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	phony := regexp.MustCompile(`(?m)^\.PHONY:(.*)$`).FindSubmatch(data)
	if phony == nil {
		t.Fatal("the Makefile has no .PHONY")
	}
	out, err := exec.CommandContext(t.Context(), "make", "-s", "-C", root, "help").Output()
	if err != nil {
		t.Fatalf("make help: %v", err)
	}
	for _, target := range bytes.Fields(phony[1]) {
		if !regexp.MustCompile(`(?m)^` + string(target) + ` +\S`).Match(out) {
			t.Errorf("make help has no line for %s:\n%s", target, out)
		}
	}
	if first := regexp.MustCompile(`(?m)^([a-z-]+):`).FindSubmatch(data); first == nil || string(first[1]) != "run" {
		t.Errorf("the first target is %q, want run", first)
	}
}
