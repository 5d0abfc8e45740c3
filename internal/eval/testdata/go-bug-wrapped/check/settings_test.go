package settings

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if got, err := Load(filepath.Join(dir, "none")); err != nil || got == nil || len(got) != 0 {
		t.Errorf("a missing file: %v, %v", got, err)
	}
	if _, err := Load(dir); err == nil {
		t.Error("a folder can be loaded")
	}
	name := filepath.Join(dir, "s")
	if err := os.WriteFile(name, []byte("a=1\nb=2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Load(name); err != nil || got["b"] != "2" {
		t.Errorf("got %v, %v", got, err)
	}
}
