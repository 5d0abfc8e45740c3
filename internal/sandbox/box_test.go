package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A report about a machine follows from the probes.
func TestDecide(t *testing.T) {
	for _, c := range []struct {
		name, backend, profile string
		landlock               int
		lacks                  Need   // of what the profile wants
		missing                string // a part of what is said of it, or of what does not work
	}{
		{"namespaces, guarded", Namespaces, "guarded", 7, 0, "cannot be renamed"},
		{"Landlock, guarded", Landlock, "guarded", 7, 0, "nothing can be made, renamed or removed"},
		{"namespaces without Landlock, guarded", Namespaces, "guarded", 0, NeedProcesses | NeedTree, "can be signaled"},
		{"namespaces without Landlock", Namespaces, "check", 0, 0, "memory is bounded for each process"},
		{"Landlock, hosts", Landlock, "server", 7, NeedHosts, "the network is off"},
		{"Landlock, none", Landlock, "plugin", 7, 0, "/tmp"},
		{"Landlock, processes", Landlock, "plugin", 7, 0, "number of processes"},
		{"old Landlock", Landlock, "plugin", 3, NeedProcesses | NeedTree, "Linux 6.12"},
		{"Landlock, sockets", Landlock, "check", 7, NeedHosts, "AF_UNIX"},
		{"off", None, "check", 7, ^Need(0), "nothing is enforced"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Profile(c.profile)
			if err != nil {
				t.Fatal(err)
			}
			e := decide(c.backend, &p, Report{Landlock: c.landlock, Group: "no group"})
			lacks := p.Wants() &^ e.Has
			if os.Geteuid() == 0 {
				lacks &^= NeedTasks // the kernel exempts root
			}
			if want := c.lacks & p.Wants(); lacks != want && lacks != want&^NeedTasks {
				t.Errorf("lacks %s, want %s", lacks, want)
			}
			said := strings.Join(append(e.Missing, e.Breaks...), "; ")
			if !strings.Contains(said, c.missing) {
				t.Errorf("says %q, want %q", said, c.missing)
			}
			for _, bad := range []string{"/tmp", "AF_UNIX", "yaya's port"} {
				if c.profile == "guarded" && strings.Contains(said, bad) {
					t.Errorf("guarded has the host's, and it says %q", said)
				}
			}
		})
	}
}

// A workspace protects existing files that configure programs.
func TestWorkspace(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{".git/hooks", ".git/modules/a/hooks", ".git/modules/a/modules/b/c/hooks", ".git/worktrees/w"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".git/modules/a/config", ".git/worktrees/w/commondir", ".git/worktrees/w/config.worktree"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("nowhere", dir+"/.git/commondir"); err != nil { // hinders nothing
		t.Fatal(err)
	}
	write, protect, err := Workspace(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if Close(write) != nil || Close(protect) != nil {
			t.Error("the paths were not open")
		}
	}()
	var names []string
	for _, p := range protect {
		names = append(names, strings.TrimPrefix(p.String(), dir+"/"))
	}
	if want := []string{".git/hooks", ".git/modules/a/config", ".git/modules/a/hooks", ".git/modules/a/modules/b/c/hooks", ".git/worktrees/w/commondir", ".git/worktrees/w/config.worktree"}; len(write) != 1 || write[0].String() != dir || !slices.Equal(names, want) {
		t.Errorf("Workspace = %v, %q; want the folder, %q", write, names, want)
	}
}

func TestProfiles(t *testing.T) {
	for _, name := range Profiles() {
		p, err := Profile(name)
		if err != nil {
			t.Fatal(err)
		}
		if p.Wants()&(NeedHidden|NeedKernel|NeedTree|NeedProcesses) != NeedHidden|NeedKernel|NeedTree|NeedProcesses {
			t.Errorf("%s wants %s", name, p.Wants())
		}
		p.Net.Allow = append(p.Net.Allow, "example.com")
		if again, _ := Profile(name); slices.Contains(again.Net.Allow, "example.com") {
			t.Errorf("%s: a change of one policy is in the next", name)
		}
	}
	if _, err := Profile("none"); err == nil || !strings.Contains(err.Error(), "browser, check, command") {
		t.Errorf("Profile(none) = %v, want an error that names the profiles", err)
	}
	got := RegistryOf("/usr/bin/npx")
	if len(got) != 1 {
		t.Fatalf("RegistryOf(npx) = %q, want one host", got)
	}
	if name, domain, _ := strings.Cut(got[0], "."); name != "registry" || domain != "npmjs.org" || !slices.Contains(Registries, got[0]) {
		t.Errorf("RegistryOf(npx) = %q, want npm's registry, one of %q", got, Registries)
	}
	if got, want := below("a.example", "", "b"), []string{"a.example", "b.a.example"}; !slices.Equal(got, want) {
		t.Errorf("below: got %q, want %q", got, want)
	}
}

func profile(t *testing.T, name string) Policy {
	t.Helper()
	p, err := Profile(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
