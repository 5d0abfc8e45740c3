//go:build unix

package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/yaya-ai/yaya/internal/atomicfile"
)

// Links of another user are not followed, and files keep their owner.
func TestReplaceAndOwners(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	const other = 12345
	dir := t.TempDir()
	put(t, dir, "mine", 0o644)
	link(t, "mine", dir, "f")
	if err := os.Lchown(filepath.Join(dir, "f"), other, other); errors.Is(err, fs.ErrPermission) {
		t.Skipf("this root gives no files away, as in a sandbox: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Replace(filepath.Join(dir, "f"), []byte("new")); err == nil || !strings.Contains(err.Error(), "link of another user") {
		t.Errorf("a link of another user: got %v, want it refused", err)
	}
	put(t, dir, "theirs", 0o640)
	theirs := filepath.Join(dir, "theirs")
	if err := os.Chown(theirs, other, other+1); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Replace(theirs, []byte("new")); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(theirs)
	if err != nil {
		t.Fatal(err)
	}
	if sys := st.Sys().(*syscall.Stat_t); sys.Uid != other || sys.Gid != other+1 || st.Mode() != 0o640 {
		t.Errorf("the file is of %d:%d with %v, want %d:%d with 0640", sys.Uid, sys.Gid, st.Mode(), other, other+1)
	}
}
