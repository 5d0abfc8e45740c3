package datadir_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/yaya-ai/yaya/daemon/datadir"
	"github.com/yaya-ai/yaya/kernel/session"
)

// nobody is a user that owns nothing.
const nobody = 65534

// asNobody calls f in a thread that reaches what nobody reaches.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be two users")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := syscall.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setfsuid(0); err != nil {
			t.Fatal(err)
		}
	}()
	f()
}

// leftUnread checks that verify and repair say of one file, and of nothing else, that it
// cannot be read, and leave all of them.
func (p *place) leftUnread(file, want string, o datadir.Options) {
	p.t.Helper()
	content, _ := os.ReadFile(filepath.Join(p.dir, file))
	var f []session.Finding
	var r datadir.Report
	var err error
	asNobody(p.t, func() { _, f, err = datadir.Verify(p.t.Context(), p.root, o) })
	if err != nil || len(f) != 1 || f[0].File != file || !f[0].Unread || f[0].Damaged || !strings.Contains(f[0].Problem, want) {
		p.t.Errorf("Verify = %+v, %v, want %s alone to be unread: %q", f, err, file, want)
	}
	p.sessions(func(m *session.Manager) {
		asNobody(p.t, func() { r, err = datadir.Repair(p.t.Context(), p.root, m, o) })
	})
	if err != nil || len(r.Mended) != 0 || len(r.Left) != 1 || r.Left[0].File != file || !r.Left[0].Unread {
		p.t.Errorf("Repair = %+v, %v, want %s alone left", r, err, file)
	}
	if after, _ := os.ReadFile(filepath.Join(p.dir, file)); !bytes.Equal(after, content) {
		p.t.Errorf("%s has %q, want it unchanged", file, after)
	}
}

// give gives everything in the directory to nobody.
func (p *place) give() {
	p.t.Helper()
	if err := os.Chmod(filepath.Dir(p.dir), 0o711); err != nil { //nolint:gosec // SQLite opens by path
		p.t.Fatal(err)
	}
	err := filepath.WalkDir(p.dir, func(at string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(at, nobody, nobody))
	})
	if err != nil {
		p.t.Skipf("the owner of a file cannot be changed here: %v", err)
	}
}

// OP-25: a file that another user owns, as root's after sudo, is not damaged: verify says that
// it cannot be read, and repair leaves it.
func TestUnreadableFilesStay(t *testing.T) {
	for _, name := range newPlace(t).files() {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.give()
			if err := os.Chown(filepath.Join(p.dir, name), 0, 0); err != nil {
				t.Fatal(err)
			}
			p.leftUnread(name, "chown", datadir.Options{})
		})
	}
}

// OP-25: a folder, or a link, in the place of a file is left as it is, and a folder that cannot
// be listed does not hide what else is damaged.
func TestWhatIsNoFileStays(t *testing.T) {
	for _, name := range []string{"config.json", "memory.db", "keys/self-signed.pem", "folders/trusted.json"} {
		for what, put := range map[string]func(at string) error{
			"a folder": func(at string) error { return os.Mkdir(at, 0o700) },
			"a link":   func(at string) error { return os.Symlink("/etc/hostname", at) },
			"a link to a neighbour": func(at string) error {
				return errors.Join(os.WriteFile(at+".real", []byte("{}"), 0o600), os.Symlink(filepath.Base(at)+".real", at))
			},
		} {
			if name == "memory.db" && strings.HasPrefix(what, "a link") {
				continue // which SQLite follows
			}
			t.Run(what+" as "+name, func(t *testing.T) {
				p := newPlace(t)
				at := filepath.Join(p.dir, name)
				if err := errors.Join(os.Remove(at), put(at)); err != nil {
					t.Fatal(err)
				}
				p.give()
				p.leftUnread(name, "not a regular file", datadir.Options{})
			})
		}
	}
	p := newPlace(t)
	p.write("permits.json", nil)
	p.give()
	if err := os.Chown(filepath.Join(p.dir, "oauth"), 0, 0); err != nil {
		t.Fatal(err)
	}
	var f []session.Finding
	var err error
	asNobody(t, func() { _, f, err = datadir.Verify(t.Context(), p.root, datadir.Options{}) })
	if err != nil || len(f) != 2 || f[0].File != "oauth" || !f[0].Unread || f[1].File != "permits.json" || !f[1].Damaged {
		t.Errorf("Verify = %+v, %v, want oauth unread and permits.json damaged", f, err)
	}
}

// OP-25: secrets whose key is missing, or is another one, are not damaged.
func TestSecretsWithoutTheirKeyStay(t *testing.T) {
	p := newPlace(t)
	p.give()
	p.leftUnread("secrets.sealed", "no key", datadir.Options{Secrets: func(context.Context) error { return errors.New("no key") }})
}
