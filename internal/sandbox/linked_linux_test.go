package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/besidetmp"
)

// linkedHome makes a home folder whose credentials are links to files elsewhere, as GNU Stow
// makes them.
func linkedHome(t *testing.T) (home string) {
	t.Helper()
	home = filepath.Join(besidetmp.Dir(t), "home")
	for _, name := range []string{
		"dotfiles/docker.json", "dotfiles/kube", "dotfiles/gnupg/key", "dotfiles/deep", "dotfiles/tooDeep", "dotfiles/README", "keys/behind", "Documents/letter", "ws/file", "notes/a",
	} {
		at := filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte("content of "+name+"\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		".docker/config.json":          "../dotfiles/docker.json",
		".kube/config":                 "../dotfiles/again",
		"dotfiles/again":               "kube",
		".gnupg/private-keys-v1.d":     "../dotfiles/gnupg",
		"dotfiles/gnupg/more":          "../../keys/behind",
		".password-store/a/b/deep":     "../../../dotfiles/deep",
		".password-store/a/b/c/deeper": "../../../../dotfiles/tooDeep",
		".aws/home":                    "..",
		".aws/gone":                    "../dotfiles/nothing",
		".config/goose/passwd":         "/etc/passwd",
		"snap/firefox/1/Documents":     "../../../Documents",
		".ssh/self":                    "config",
		".ssh/config":                  "self",
	} {
		at := filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.Symlink(to, at)); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// SEC-1: the target of a link in a hidden folder is hidden like the folder, by every path.
func TestLinkedCredentialsAreHidden(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		for _, name := range []string{"command", "server"} {
			t.Run(backend+"/"+name, func(t *testing.T) {
				b := needs(t, backend)
				home := linkedHome(t)
				p := profile(t, name)
				p.Home = home
				if name == "server" { // or nothing of the home folder is seen
					p.Read = open(t, filepath.Join(home, "dotfiles"), filepath.Join(home, "Documents"), filepath.Join(home, "keys"))
				}
				p.Write = open(t, filepath.Join(home, "ws"))
				files := []string{
					".docker/config.json", ".kube/config", ".gnupg/private-keys-v1.d/key", ".gnupg/private-keys-v1.d/more", ".password-store/a/b/deep",
					"dotfiles/docker.json", "dotfiles/kube", "dotfiles/again", "dotfiles/gnupg/key", "dotfiles/gnupg/more", "dotfiles/deep", "keys/behind",
					"dotfiles/README", "Documents/letter", "ws/file",
				}
				script := "cd " + home + `; cat "$@" 2>/dev/null; head -c 5 /etc/passwd`
				got, err := b.start(t, p, filepath.Join(home, "ws"), nil, append([]string{"sh", "-c", script, "sh"}, files...)...)
				if err != nil {
					t.Fatal(err)
				}
				if want := "content of dotfiles/README\ncontent of Documents/letter\ncontent of ws/file\nroot:"; got.out != want {
					t.Errorf("reads %q, want %q", got.out, want)
				}
			})
		}
	}
}

// A policy that names a folder of credentials shows where its links lead.
func TestLinkedCredentialsThatAreNamed(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			home := linkedHome(t)
			p := profile(t, "command")
			p.Home = home
			p.Read = open(t, filepath.Join(home, ".docker"), filepath.Join(home, "dotfiles/deep"))
			p.Write = open(t, filepath.Join(home, "ws"))
			got, err := b.start(t, p, filepath.Join(home, "ws"), nil, "sh", "-c", "cd ..; cat .docker/config.json dotfiles/docker.json dotfiles/deep dotfiles/kube 2>/dev/null; true")
			if want := "content of dotfiles/docker.json\ncontent of dotfiles/docker.json\ncontent of dotfiles/deep\n"; err != nil || got.out != want {
				t.Errorf("reads %q, %v; want %q", got.out, err, want)
			}
		})
	}
}

// A link to a program does not take the other programs of its folder away.
func TestLinkedPrograms(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			home := linkedHome(t)
			bin := filepath.Join(home, ".local/bin")
			err := errors.Join(os.MkdirAll(bin, 0o700), os.MkdirAll(filepath.Join(home, ".docker/cli-plugins"), 0o700), os.Symlink(filepath.Join(bin, "plugin"), filepath.Join(home, ".docker/cli-plugins/plugin")))
			for _, name := range []string{"plugin", "tool"} {
				err = errors.Join(err, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho "+name+"\n"), 0o700))
			}
			if err != nil {
				t.Fatal(err)
			}
			p := profile(t, "server")
			p.Home, p.Runtimes = home, open(t, bin)
			got, err := b.start(t, p, "/", nil, "sh", "-c", bin+"/tool; "+bin+"/plugin")
			if want := "tool\nplugin\n"; err != nil || got.out != want {
				t.Errorf("got %q, %v; want %q", got.out, err, want)
			}
		})
	}
}

// The look at links is bounded, the topmost first, and questions about a path count them.
func TestLinkedCredentials(t *testing.T) {
	home := linkedHome(t)
	at := func(names ...string) (all []string) {
		for _, name := range names {
			all = append(all, filepath.Join(home, name))
		}
		return all
	}
	folders := at(".docker", ".kube", ".gnupg", ".password-store", ".aws", ".config/goose", "snap/firefox", ".ssh", ".nothing", "notes")
	none := func(string) bool { return false }
	got := linkedCredentials(home, folders, none)
	slices.Sort(got)
	if want := at("dotfiles/deep", "dotfiles/docker.json", "dotfiles/gnupg", "dotfiles/kube", "keys/behind"); !slices.Equal(got, want) {
		t.Errorf("links lead to %q, want %q", got, want)
	}
	for name, want := range map[string]bool{"dotfiles/docker.json": true, "dotfiles/gnupg/key": true, "dotfiles/README": false, "dotfiles": false, "Documents": false} {
		if got := Credentials(home, filepath.Join(home, name)); got != want {
			t.Errorf("Credentials(%s) = %v, want %v", name, got, want)
		}
	}
	many := filepath.Join(home, "many")
	for i := range linkedEntries + 100 {
		if err := errors.Join(os.MkdirAll(many, 0o700), os.Symlink("../dotfiles/none", filepath.Join(many, fmt.Sprint(i)))); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.MkdirAll(many+"/z", 0o700), os.Symlink("../../keys/behind", many+"/z/link")); err != nil {
		t.Fatal(err)
	}
	if got := linkedCredentials(home, []string{many}, none); len(got) > 0 {
		t.Errorf("behind %d entries: links lead to %q, want that nobody looks", linkedEntries, got)
	}
	var targets []string
	for i := range linkedTargets + 10 {
		name := filepath.Join(home, "notes", fmt.Sprint("t", i))
		targets = append(targets, name)
		if err := errors.Join(os.WriteFile(name, nil, 0o600), os.MkdirAll(filepath.Join(home, "few"), 0o700), os.Symlink(name, filepath.Join(home, "few", fmt.Sprint(i)))); err != nil {
			t.Fatal(err)
		}
	}
	if got := linkedCredentials(home, at("few"), none); len(got) != linkedTargets {
		t.Errorf("%d targets: got %d, want %d", len(targets), len(got), linkedTargets)
	}
	if !strings.HasPrefix(strings.Join(linkedCredentials(home, at("few"), none), ""), filepath.Join(home, "notes")) {
		t.Error("the targets are others")
	}
}
