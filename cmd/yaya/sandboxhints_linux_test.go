package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// yaya tells a user who tries a command in a sandbox which paths the command names and
// does not see, and what to do about a repository that its folder lies in.
func TestSandboxRunHints(t *testing.T) {
	needNamespaces(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	b := newBox(t)
	top := filepath.Join(b.dir, "r")
	sub, docs := filepath.Join(top, "sub"), filepath.Join(b.dir, "docs")
	if err := errors.Join(os.MkdirAll(sub, 0o700), os.MkdirAll(docs, 0o700), os.WriteFile(filepath.Join(sub, "f"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", top).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	git, seen := "or allow commits: --write "+filepath.Join(top, ".git"), "the command names "+docs+", which the sandbox hides (to show it: --read "+docs
	for _, c := range []struct {
		name, want string // "" for neither hint
		dir        string
		args       []string
	}{
		{"git that fails below the top", git, sub, []string{"git", "add", "f"}},
		{"in a shell", git, sub, []string{"sh", "-c", "cd . && git add f"}},
		{"git at the top", "", top, []string{"git", "nothing"}},
		{"another command", "", sub, []string{"false"}},
		{"git that works", "", sub, []string{"git", "--version"}},
		{"a hidden folder", seen, sub, []string{"--profile", "server", "ls", docs}},
		{"of a flag", seen, sub, []string{"--profile", "server", "ls", "--ignore=" + docs, "/usr"}},
		{"a folder that is shown", "", sub, []string{"--profile", "server", "--read", docs, "ls", docs}},
		{"one that is not there", "", sub, []string{"--profile", "server", "ls", docs + "2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, said, _ := b.in(c.dir, append([]string{"sandbox", "run"}, c.args...)...)
			for _, hint := range []string{git, seen} {
				if strings.Contains(said, hint) != (hint == c.want) {
					t.Errorf("yaya sandbox run %q says %q; want %q in it: %v", c.args, said, hint, hint == c.want)
				}
			}
		})
	}
}

// yaya offers no flag that it would refuse: for its own files, and for addresses that each
// sandbox has of its own. For a link, it names the target, which --read takes.
func TestSandboxRunOffersNothing(t *testing.T) {
	needNamespaces(t)
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	b := newBox(t)
	b.make("c/", "d/", "ws/", "docs/f")
	own, key := filepath.Join(b.dir, "c"), filepath.Join(b.dir, "c", "config.toml")
	if err := errors.Join(os.Chmod(own, 0o700), os.Chmod(filepath.Join(b.dir, "d"), 0o700), os.WriteFile(key, nil, 0o600), os.Symlink("docs", filepath.Join(b.dir, "link")), os.Symlink("c/config.toml", filepath.Join(b.dir, "mine"))); err != nil {
		t.Fatal(err)
	}
	link, mine, docs := filepath.Join(b.dir, "link"), filepath.Join(b.dir, "mine"), filepath.Join(b.dir, "docs")
	curl := func(at string) []string {
		return []string{"--profile", "server", "curl", "-s", "-m", "10", "--noproxy", "", "-x", "http://127.0.0.1:3128", "http://" + at + "/"}
	}
	for _, c := range []struct {
		name string
		args []string
		want string // a part of what it says
		hint string // that it offers, "" for none
	}{
		{"yaya's file", []string{"cat", key}, "the command names " + key + ", which belongs to yaya itself: no flag shows it", ""},
		{"yaya's folder, in another profile", []string{"--profile", "server", "ls", own}, "which belongs to yaya itself", ""},
		{"a link to yaya's file", []string{"--profile", "server", "cat", mine}, "which belongs to yaya itself", ""},
		{"a link", []string{"--profile", "server", "ls", link}, "the command names " + link + ", which the sandbox hides", "--read " + docs},
		{"the sandbox's Go modules", curl("127.0.0.3:3128"), "kept from reaching 127.0.0.3:3128: in a sandbox, Go modules of the host are at this address", ""},
		{"the sandbox's proxy", curl("localhost:3128"), "kept from reaching localhost:3128: in a sandbox, 127.0.0.1:3128 is the address of its proxy", ""},
		{"no address", curl("0.0.0.0:8080"), "connect to 127.0.0.1 or ::1", ""},
		{"a service", curl("127.0.0.1:9"), "kept from reaching 127.0.0.1:9: it is not among the allowed hosts", "(to allow it: --host 127.0.0.1:9)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, said, _ := b.in(filepath.Join(b.dir, "ws"), append([]string{"sandbox", "run"}, c.args...)...)
			offers := strings.Contains(said, "--read") || strings.Contains(said, "--host")
			if !strings.Contains(said, c.want) || !strings.Contains(said, c.hint) || offers != (c.hint != "") {
				t.Errorf("yaya sandbox run %q says %q; want %q, and the offer %q", c.args, said, c.want, c.hint)
			}
		})
	}
}
