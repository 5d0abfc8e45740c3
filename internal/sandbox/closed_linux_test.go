package sandbox

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/besidetmp"
)

// A socket in a folder of another user that nobody else may enter, in the workspace
// or elsewhere, does not prevent a sandbox of root, and stays out of its reach.
func TestSocketsInFoldersOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("an ordinary user does not see such a socket")
	}
	for _, backend := range []string{Namespaces, Bwrap} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			dir := besidetmp.Dir(t)
			ws, elsewhere := filepath.Join(dir, "ws"), filepath.Join(dir, "srv")
			for _, in := range []string{ws + "/theirs", ws + "/deep/theirs", ws + "/open", elsewhere + "/theirs"} {
				if err := os.MkdirAll(in+"/d", 0o755); err != nil {
					t.Fatal(err)
				}
				l, err := net.Listen("unix", in+"/d/s")
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				err = os.WriteFile(in+"/d/f", []byte("of another"), 0o600)
				if filepath.Base(in) == "theirs" {
					err = errors.Join(err, os.Chown(in, 1234, 1234), os.Chmod(in, 0o700))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range []string{"command", "check", "server"} {
				p := profile(t, name)
				p.Home, p.Write = filepath.Join(dir, "home"), open(t, ws)
				got, err := b.start(t, p, ws, nil, "sh", "-c", `echo ran; cat theirs/d/f deep/theirs/d/f `+elsewhere+`/theirs/d/f 2>/dev/null; for s in theirs/d/s deep/theirs/d/s open/d/s; do test -S $s && echo reached $s; done; rm -r theirs 2>/dev/null; cat open/d/f; true`)
				if err != nil || got.code != 0 || !strings.HasPrefix(got.out, "ran") || strings.Contains(got.out, "bwrap") || strings.Contains(got.out, "reached") {
					t.Errorf("profile %s: got %q, code %d, %v; want it to run without a socket", name, got.out, got.code, err)
				}
				if backend == Bwrap && strings.Count(got.out, "of another") != 1 {
					t.Errorf("profile %s: got %q, want the files of folders alone that can be entered", name, got.out)
				}
			}
			if _, err := os.Lstat(ws + "/theirs/d/s"); err != nil {
				t.Errorf("the folder of another user was changed: %v", err)
			}
		})
	}
}

// Where something is granted in such a folder, bubblewrap is not tried in vain.
func TestWorkspaceInFolderOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("an ordinary user has no workspace there")
	}
	b := needs(t, Bwrap)
	dir := besidetmp.Dir(t)
	ws := filepath.Join(dir, "theirs", "ws")
	if err := errors.Join(os.MkdirAll(ws, 0o755), os.Chown(filepath.Dir(ws), 1234, 1234), os.Chmod(filepath.Dir(ws), 0o700)); err != nil {
		t.Fatal(err)
	}
	p := profile(t, "command")
	p.Write = open(t, ws)
	got, err := b.start(t, p, "/", nil, "true")
	if err == nil || !strings.Contains(err.Error(), "the folder "+filepath.Dir(ws)+" is another user's and closed to others") || got.out != "" {
		t.Errorf("got %q, %v; want one line that says why", got.out, err)
	}
}
