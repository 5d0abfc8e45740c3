package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A link in Git's configuration grants nothing: neither credentials, nor a file of
// yaya's, nor a cache of others. In the workspace, its target is read-only.
func TestProtectGivesNothing(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			p := newPlace(t)
			b.Own = []string{p.own}
			git := filepath.Join(p.ws, ".git")
			if err := os.WriteFile(p.secret, []byte("secret\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			links := map[string]string{
				"modules/x/hooks": filepath.Dir(p.secret), "modules/y/hooks": p.key, "modules/z/config": p.secret, "modules/c/hooks": p.dir + "/caches",
				"modules/in/hooks": p.ws + "/ours",
			}
			for _, dir := range []string{p.ws + "/ours", p.dir + "/caches"} {
				if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(dir+"/f", []byte("inside"), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			for name, to := range links {
				at := filepath.Join(git, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(filepath.Join(filepath.Dir(at), "HEAD"), []byte("ref"), 0o600), os.Symlink(to, at)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(p.key, []byte("of yaya"), 0o600); err != nil {
				t.Fatal(err)
			}
			pol := profile(t, "command")
			pol.Home, pol.Hide = p.home, append(pol.Hide, p.dir+"/caches")
			if _, err := pol.Work(p.ws); err != nil {
				t.Fatal(err)
			}
			if backend == Bwrap { // it cannot keep the links, and so starts nothing
				if got, err := b.start(t, pol, p.ws, nil, "true"); err == nil || !strings.Contains(err.Error(), ".git/modules/") {
					t.Errorf("got %+v, %v; want an error that names a link", got, err)
				}
				return
			}
			got, err := b.start(t, pol, p.ws, nil, "sh", "-c", "cat "+p.secret+" "+p.key+" "+p.dir+"/caches/f; cat .git/modules/[xyzc]/hooks .git/modules/z/config .git/modules/[xyzc]/hooks/*; echo x > ours/f")
			if err != nil {
				t.Fatal(err)
			}
			for _, data := range []string{"secret\n", "of yaya", "inside"} {
				if strings.Contains(got.out+"\n", data) {
					t.Errorf("got %q, which has %q", got.out, data)
				}
			}
			if data, err := os.ReadFile(p.ws + "/ours/f"); backend != Landlock && (err != nil || string(data) != "inside") {
				t.Errorf("what a link in the workspace leads to is %q, %v; want it unchanged", data, err)
			}
		})
	}
}

// host runs a script outside any sandbox.
func host(t *testing.T, dir, script string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("script %q = %v, want no error: %s", script, err, out)
	}
}

// A link in Git's configuration cannot be replaced: otherwise a program could replace it,
// or the link .git, and make the next git outside the sandbox run any program. Git works.
func TestLinksOfGitStay(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		for _, c := range []struct{ name, make, link string }{
			{"a repository elsewhere in the workspace", "mv .git real.git && ln -s real.git .git", ".git"},
			{"its settings", "mv .git/config ours.config && ln -s ../ours.config .git/config", ".git/config"},
			{"its hooks", "rm -rf .git/hooks && mkdir ours && ln -s ../ours .git/hooks", ".git/hooks"},
		} {
			t.Run(backend+"/"+c.name, func(t *testing.T) {
				b := needs(t, backend)
				p := newPlace(t)
				p.ws = p.dir + "/repository"
				host(t, p.dir, "git init -q repository && cd repository && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m old && "+c.make)
				to, err := os.Readlink(filepath.Join(p.ws, c.link))
				if err != nil {
					t.Fatal(err)
				}
				for _, script := range []string{
					"rm -f LINK", "mv LINK away", "ln -sfnT /tmp/elsewhere LINK", "mkdir d; mv -T d LINK", "echo x > f; mv -fT f LINK", "mv $(dirname LINK) away",
				} {
					pol := profile(t, "command")
					pol.Home = p.home
					if _, err := pol.Work(p.ws); err != nil {
						t.Fatal(err)
					}
					script = strings.ReplaceAll(script, "LINK", c.link)
					got, err := b.start(t, pol, p.ws, nil, "sh", "-c", script)
					if backend == Bwrap {
						if err == nil || !strings.Contains(err.Error(), "/"+c.link+" ") {
							t.Fatalf("got %+v, %v; want an error that names the link", got, err)
						}
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					if now, err := os.Readlink(filepath.Join(p.ws, c.link)); err != nil || now != to {
						t.Fatalf("%s: the link leads to %q, %v (%s); want %q", script, now, err, got.out, to)
					}
				}
				if backend != Namespaces {
					return // Landlock refuses new names beside what is protected
				}
				pol := profile(t, "command")
				pol.Home = p.home
				if _, err := pol.Work(p.ws); err != nil {
					t.Fatal(err)
				}
				got, err := b.start(t, pol, p.ws, nil, "sh", "-c", "echo new > new && git add new && git -c user.name=a -c user.email=a@b commit -qm new 2>&1 && git log --oneline | head -1")
				if err != nil || !strings.HasSuffix(strings.TrimSpace(got.out), "new") {
					t.Errorf("a commit: %q, %v; want that it works", got.out, err)
				}
			})
		}
	}
}
