package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/yaya-ai/yaya/internal/workspace"
)

// SEC-4: a bind mount makes no difference.
func TestGuardOfMounts(t *testing.T) {
	base := t.TempDir()
	data, ws := filepath.Join(base, "state/data"), filepath.Join(base, "my ws")
	for _, dir := range []string{data, filepath.Join(data, "keys"), filepath.Join(ws, "in")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	g, err := workspace.NewGuard(
		workspace.Own{Name: "data folder", Path: data, Move: "--data-dir"},
		workspace.Own{Name: "key folder", Path: filepath.Join(data, "keys"), Move: "--data-dir"},
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Check(ws); err != nil {
		t.Fatalf("Check(%s) = %v before anything is mounted", ws, err)
	}
	for _, tt := range []struct{ name, source, target, workspace string }{
		{"the folder as workspace", data, ws, ws},
		{"the folder above as workspace", filepath.Dir(data), ws, ws},
		{"the folder in the workspace", data, filepath.Join(ws, "in"), ws},
		{"the folder above in the workspace", filepath.Dir(data), filepath.Join(ws, "in"), ws},
		{"the keys in the workspace", filepath.Join(data, "keys"), filepath.Join(ws, "in"), ws},
		{"the workspace lies in the mount", data, filepath.Join(ws, "in"), filepath.Join(ws, "in/keys")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := syscall.Mount(tt.source, tt.target, "", syscall.MS_BIND, ""); err != nil {
				t.Skipf("bind mounts are not to be had: %v", err)
			}
			defer func() {
				if err := syscall.Unmount(tt.target, 0); err != nil {
					t.Errorf("Unmount(%s) = %v, want no error", tt.target, err)
				}
				if err := g.Check(ws); err != nil {
					t.Errorf("Check(%s) = %v after it was unmounted", ws, err)
				}
			}()
			if err := g.Check(tt.workspace); !errors.Is(err, workspace.ErrOwn) {
				t.Errorf("Check = %v, want %v", err, workspace.ErrOwn)
			}
		})
	}
}

// SEC-4: a mount that comes into a workspace with the folder it is in makes no difference either, at
// once: the system reports what is mounted, but not the rename of a folder that contains mounts.
func TestGuardOfMovedMounts(t *testing.T) {
	base := t.TempDir()
	data, ws, other := filepath.Join(base, "state/data"), filepath.Join(base, "ws"), filepath.Join(base, "other")
	for _, dir := range []string{data, ws, filepath.Join(other, "in")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	g, err := workspace.NewGuard(workspace.Own{Name: "data folder", Path: data, Move: "--data-dir"})
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount(data, filepath.Join(other, "in"), "", syscall.MS_BIND, ""); err != nil {
		t.Skipf("bind mounts are not to be had: %v", err)
	}
	at := filepath.Join(other, "in")
	defer func() {
		if err := syscall.Unmount(at, 0); err != nil {
			t.Errorf("Unmount(%s) = %v, want no error", at, err)
		}
	}()
	if err := g.Check(ws); err != nil {
		t.Fatalf("Check(%s) = %v while the mount is elsewhere", ws, err)
	}
	if err := os.Rename(other, filepath.Join(ws, "other")); err != nil {
		t.Fatal(err)
	}
	at = filepath.Join(ws, "other/in")
	if err := g.Check(ws); !errors.Is(err, workspace.ErrOwn) {
		t.Errorf("Check = %v with the mount in it, want %v", err, workspace.ErrOwn)
	}
	moved := filepath.Join(base, "moved")
	if err := os.Rename(ws, moved); err != nil {
		t.Fatal(err)
	}
	at = filepath.Join(moved, "other/in")
	if err := g.Check(moved); !errors.Is(err, workspace.ErrOwn) {
		t.Errorf("Check = %v under another name, want %v", err, workspace.ErrOwn)
	}
}
