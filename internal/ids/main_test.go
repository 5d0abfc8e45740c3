package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The check can fail: it names exactly what nobody quotes.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	missing, err := check(dir)
	if err != nil || len(missing) != 216-4+27-1+56+77 {
		t.Fatalf("%d ids are missing where there are no tests: %v", len(missing), err)
	}
	write("a_test.go", "package a\n\nimport \"testing\"\n\n// Y-1, Y-3…Y-5 and Y-10…Y-90: shown.\nfunc TestA(t *testing.T) {}\n")
	write("b_test.go", "package a\n\n// Y-6: a file without tests shows nothing.\nvar x int\n")
	write("c.go", "package a\n\n// Y-7: nor does code.\n")
	write("d.txtar", "# Y-8\n")
	missing, err = check(dir)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]bool{"Y-1": false, "Y-2": true, "Y-3": false, "Y-4": false, "Y-5": false, "Y-6": true, "Y-7": true, "Y-8": false, "Y-10": false, "Y-50": true, "Y-101": false} {
		if got := slices.Contains(missing, id); got != want {
			t.Errorf("%s missing: %v, want %v", id, got, want)
		}
	}
}
