package manage

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/workspace"
)

// A store through a mapping, made before the file was looked at, changes its content and
// no time of it. A start that is refused for it has the folder asked about again.
func TestStoreThroughAMapping(t *testing.T) {
	data, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "srv.js"), []byte("one"), 0o600), os.WriteFile(filepath.Join(dir, projectFile), []byte(`{"mcpServers":{"s":{"command":"node","args":["srv.js"]}}}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "srv.js"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	content, err := unix.Mmap(int(f.Fd()), 0, 3, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(content) }()
	copy(content, "two") // from now on the page is written without a fault
	var seen Digests
	store := storeOf(data, &seen)
	st, err := store.Status(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Trust(dir, st.Digest(), "test"); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the file's digest is remembered", func() bool {
		st, err := store.Status(dir)
		return err == nil && st.Trusted && len(seen.seen) == 1
	})
	copy(content, "bad")
	w, err := (*workspace.Guard)(nil).Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	cfg, err := projectServers(w)
	if err != nil {
		t.Fatal(err)
	}
	var untrusted *UntrustedError
	if _, err := seen.MayStart(store, cfg.Servers[0]); !errors.As(err, &untrusted) {
		t.Errorf("MayStart() = %v, want that the folder is not trusted", err)
	}
	if st, err := store.Status(dir); err != nil || st.Trusted || len(st.Added) != 1 {
		t.Errorf("after the refusal the folder's trust is %v with %d new items, %v; want it asked about", st.Trusted, len(st.Added), err)
	}
}
