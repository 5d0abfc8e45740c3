package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// ofNobody gives the box to the user nobody, and returns what runs yaya as that user there.
func (b *box) ofNobody() (run func(args ...string) (string, error)) {
	b.t.Helper()
	if os.Getuid() != 0 {
		b.t.Skip("only root can be two users")
	}
	b.bin = copyBinary(b.t, b.bin)
	if err := os.Chown(b.dir, nobody, nobody); err != nil {
		b.t.Skipf("the owner of a folder cannot be changed here: %v", err)
	}
	return func(args ...string) (string, error) {
		b.t.Helper()
		c := exec.CommandContext(b.t.Context(), b.bin, b.args(args...)...)
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		c.Env, c.Dir = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir}, b.dir
		c.Stdin = strings.NewReader("a secret of nobody's")
		out, err := c.CombinedOutput()
		return string(out), err
	}
}

// listing has a line for everything below a folder.
func listing(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := e.Info()
		if err == nil {
			sys, _ := st.Sys().(*syscall.Stat_t)
			out = append(out, fmt.Sprintf("%s %v %d %d", at, st.Mode(), sys.Uid, st.Size()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Files that root has left in the directory, and secrets without their key, are not damaged:
// verify and repair say so, exit with 1, and leave them.
func TestRepairLeavesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	asNobody := b.ofNobody()
	for _, args := range [][]string{{"secret", "set", "S"}, {"token", "create", "one"}, {"config", "set", "strategy", "react"}, {"session", "list"}} {
		if said, err := asNobody(args...); err != nil {
			t.Fatalf("yaya %v as its own user: %v\n%s", args, err, said)
		}
	}
	for _, name := range []string{"config.json", "secrets.sealed", "control/log.jsonl", "keys/seal.key", "keys/audit.head", "control", "keys"} {
		at := b.file(name)
		if err := os.Chown(at, 0, 0); err != nil {
			t.Fatal(err)
		}
		before := listing(t, b.dir)
		for _, line := range []string{"verify", "repair", "repair --control"} {
			if strings.HasPrefix(line, "repair --control") && !strings.Contains(name, "control") && !strings.Contains(name, "keys") {
				continue
			}
			said, err := asNobody(strings.Fields(line)...)
			exit, _ := errors.AsType[*exec.ExitError](err)
			if exit == nil || exit.ExitCode() != 1 || !strings.Contains(said, "permission denied") || !strings.Contains(said, "chown") || strings.Contains(said, "DAMAGED") || strings.Contains(said, "repaired  ") {
				t.Errorf("yaya %s with %s of root: %v\n%s, want exit 1, that it cannot be read, and chown", line, name, err, said)
			}
			if line == "verify" && !strings.Contains(said, "UNREAD  "+name+":") {
				t.Errorf("yaya verify with %s of root says\n%s, want a finding about it", name, said)
			}
		}
		// A report is written, each command opens the sessions, and the lock has its process id.
		other := func(l string) bool {
			return strings.Contains(l, "/damaged") || strings.Contains(l, "/tapes/.index") || strings.Contains(l, "/yaya.lock") || strings.HasPrefix(l, b.file()+" ")
		}
		before = slices.DeleteFunc(before, other)
		after := slices.DeleteFunc(listing(t, b.dir), other)
		if !slices.Equal(after, before) {
			t.Errorf("with %s of root, the directory has\n%s\nwant\n%s", name, strings.Join(after, "\n"), strings.Join(before, "\n"))
		}
		if err := os.Chown(at, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	key := filepath.Join(b.dir, "c", "secrets.key")
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"verify", "repair"} {
		said, err := asNobody(line)
		if err == nil || !strings.Contains(said, "UNREAD") || !strings.Contains(said, "--config-dir") || strings.Contains(said, "DAMAGED") {
			t.Errorf("yaya %s without the key of the secrets: %v\n%s, want exit 1 and what to do", line, err, said)
		}
	}
	if _, err := os.Stat(b.file("secrets.sealed")); err != nil {
		t.Errorf("the sealed secrets are gone: %v", err)
	}
	if err := os.Rename(key+".away", key); err != nil {
		t.Fatal(err)
	}
	if said, err := asNobody("verify"); err != nil {
		t.Errorf("verify at the end: %v\n%s, want nothing found", err, said)
	}
}
