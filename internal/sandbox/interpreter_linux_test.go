package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/besidetmp"
)

// F5: files of a project, and those that a program has written, decide on nothing that a
// strict sandbox shows beside the system, known runtimes and what was granted. The
// user's own choices, such as the links on the PATH, work.
func TestInterpretersShowNothing(t *testing.T) {
	const tool = "#!/bin/sh\necho ran; cat DIR/home/Documents/secret DIR/home/app/secret DIR/home/.ssh/id DIR/home/opt/t/lib/a /etc/shadow 2>/dev/null\n"
	for _, c := range []struct {
		name    string
		files   map[string]string // "-> to" for a link
		command string            // in the project, or absolute
		path    string            // PATH of the program
		project string            // "" for home/proj
		read    string            // granted beside the project
		want    string            // in the output, or in the error after a "!"
	}{
		{"a form feed in a name of an interpreter", map[string]string{"proj/lnk": "-> ../Documents", "proj/lnk\fx": "-> /bin/sh", "proj/run": "#!DIR/home/proj/lnk\fx DIR/home/proj/s\n", "proj/s": tool}, "run", "", "", "", "ran"},
		{"secrets of root behind one", map[string]string{"proj/lnk": "-> /etc/shadow", "proj/lnk\fx": "-> /bin/sh", "proj/run": "#!DIR/home/proj/lnk\fx DIR/home/proj/s\n", "proj/s": tool}, "run", "", "", "", "ran"},
		{"secrets of root as an interpreter", map[string]string{"proj/run": "#!/etc/shadow\n"}, "run", "", "", "", "!"},
		{"a folder as an interpreter", map[string]string{"proj/lnk": "-> ../Documents", "proj/run": "#!DIR/home/proj/lnk\n"}, "run", "", "", "", "!"},
		{"a program in the home folder", map[string]string{"proj/run": "#! \tDIR/home/Documents/tool \n"}, "run", "", "", "", `!home/Documents/tool is neither`},
		{"one that a link leads to", map[string]string{"proj/lnk": "-> ../Documents/tool", "proj/run": "#!DIR/home/proj/lnk\n"}, "run", "", "", "", `!name it in "read"`},
		{"a link in a folder that is hidden", map[string]string{"Documents/sh": "-> /bin/sh", "proj/run": "#!DIR/home/Documents/sh\n"}, "run", "", "", "", `!the symbolic link DIR/home/Documents/sh`},
		{"credentials", map[string]string{".ssh/tool": tool, "proj/run": "#!DIR/home/.ssh/tool\n"}, "run", "", "", "", `!home/.ssh/tool`},
		{"over the root of yaya", map[string]string{"proj/run": "#!/proc/self/root/DIR/home/Documents/tool\n"}, "run", "", "", "", `!the symbolic link /proc/self`},
		{"a program that env finds", map[string]string{"proj/run": "#!/usr/bin/env tool\n"}, "run", "DIR/home/Documents", "", "", `!home/Documents/tool`},
		{"the command as a link", map[string]string{"proj/run": "-> ../Documents/tool"}, "run", "", "", "", `!home/Documents/tool`},
		{"the command behind a link", map[string]string{"proj/lnk": "-> ../Documents"}, "lnk/tool", "", "", "", `!home/Documents/tool`},
		{"the command over a hidden link", map[string]string{"proj/lnk": "-> ../Documents", "Documents/sh": "-> /bin/sh"}, "lnk/sh", "", "", "", `!the symbolic link DIR/home/Documents/sh`},
		{"an interpreter of an interpreter", map[string]string{"proj/run": "#!DIR/home/proj/two\n", "proj/two": "#!DIR/home/Documents/tool\n"}, "run", "", "", "", `!home/Documents/tool`},
		{"a link that the program wrote", map[string]string{"cache/sh": "-> ../Documents/tool", "proj/run": "#!DIR/home/cache/sh\n"}, "run", "", "", "", `!home/Documents/tool`},
		{"a runtime that is a project", map[string]string{"Documents/pyvenv.cfg": "", "Documents/bin/tool": tool, "proj/run": "#!DIR/home/Documents/bin/tool\n"}, "run", "", "", "", `!home/Documents/bin/tool`},
		{"a project in a folder called bin", map[string]string{"app/pyvenv.cfg": "", "app/bin/run": tool}, "run", "", "app/bin", "", "ran"},
		{"what a venv is made of", map[string]string{".pyenv/versions/3/bin/python": "#!/bin/sh\ncat DIR/home/.pyenv/versions/3/lib/a\n", ".pyenv/versions/3/lib/a": "works\n", "proj/v/bin/python": "-> DIR/home/.pyenv/versions/3/bin/python", "proj/run": "#!DIR/home/proj/v/bin/python\n"}, "run", "", "", "", "works"},
		{"and conda", map[string]string{"miniconda3/conda-meta/x": "", "miniconda3/bin/python": "#!/bin/sh\ncat DIR/home/miniconda3/lib/a\n", "miniconda3/lib/a": "works\n", "proj/python": "-> DIR/home/miniconda3/bin/python", "proj/run": "#!DIR/home/proj/python\n"}, "run", "", "", "", "works"},
		{"a link of the user's on the PATH", map[string]string{"bin/tool": "-> ../opt/t/bin/tool", "opt/t/conda-meta/x": "", "opt/t/bin/tool": "#!/bin/sh\ncat DIR/home/opt/t/lib/a\n", "opt/t/lib/a": "works\n", "proj/run": "#!/usr/bin/env tool\n"}, "run", "DIR/home/bin", "", "", "works"},
		{"a venv of the user's by its link", map[string]string{"venv/pyvenv.cfg": "works\n", ".pyenv/versions/3/bin/python": "#!/bin/sh\ncat DIR/home/venv/pyvenv.cfg\n", "venv/bin/python": "-> DIR/home/.pyenv/versions/3/bin/python"}, "DIR/home/venv/bin/python", "", "", "", "works"},
		{"what is named in read", map[string]string{"tools/sh": "#!/bin/sh\necho works\n", "proj/run": "#!DIR/home/tools/sh\n"}, "run", "", "", "tools", "works"},
	} {
		for _, backend := range []string{Namespaces, Bwrap, Landlock} {
			t.Run(backend+"/"+c.name, func(t *testing.T) {
				b := needs(t, backend)
				dir := besidetmp.Dir(t)
				in := func(s string) string { return strings.ReplaceAll(s, "DIR", dir) }
				files := map[string]string{"Documents/secret": "canary", "Documents/tool": tool, "app/secret": "canary", ".ssh/id": "canary", "proj/x": "", "bin/x": ""}
				for name, data := range c.files {
					files[name] = data
				}
				for name, data := range files {
					at := filepath.Join(dir, "home", name)
					err := os.MkdirAll(filepath.Dir(at), 0o755)
					if to, is := strings.CutPrefix(data, "-> "); is {
						err = errors.Join(err, os.Symlink(in(to), at))
					} else {
						err = errors.Join(err, os.WriteFile(at, []byte(in(data)), 0o755))
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				project := c.project
				if project == "" {
					project = "proj"
				}
				project = filepath.Join(dir, "home", project)
				pol := profile(t, "server")
				pol.Home, pol.Cache = dir+"/home", dir+"/home/cache"
				pol.Read = open(t, project)
				if c.read != "" {
					pol.Read = append(pol.Read, open(t, filepath.Join(dir, "home", c.read))...)
				}
				pol.Runtimes = follow(t, dir+"/home/bin")
				command := in(c.command)
				if !filepath.IsAbs(command) {
					command = filepath.Join(project, command)
				}
				got, err := b.start(t, pol, project, []string{"PATH=" + in(c.path) + ":/usr/bin:/bin"}, command)
				if want, fails := strings.CutPrefix(in(c.want), "!"); fails {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("started: %q, %v; want an error with %q", got.out, err, want)
					}
				} else if err != nil || !strings.Contains(got.out, want) {
					t.Errorf("output %q, error %v; want %q", got.out, err, want)
				}
				if strings.Contains(got.out, "canary") || strings.Contains(got.out, "root:") {
					t.Errorf("the program read what is hidden: %q", got.out)
				}
			})
		}
	}
}

// A runtime shows nothing that the policy hides, whoever names it.
func TestSecretsOfRoot(t *testing.T) {
	r := &Run{box: &Box{Own: []string{"/srv/yaya"}}, policy: Policy{Home: "/home/u", Hide: []string{"/srv/hidden"}}}
	for name, want := range map[string]bool{"/etc/shadow": true, "/etc/ssl/private/k": true, "/etc/sudoers.d": true, "/var/lib/docker/x": true, "/home/u/.ssh": true, "/srv/yaya/key": true, "/srv/hidden/x": true, "/usr/bin/python3": false, "/opt/x": false} {
		if got := r.secret(name); got != want {
			t.Errorf("secret(%s) = %v, want %v", name, got, want)
		}
	}
}

// The first line is split as the kernel splits it.
func TestInterpreter(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(bin+"/node", nil, 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	for head, want := range map[string]string{
		"#!/bin/sh\n": "/bin/sh", "#!/bin/sh": "/bin/sh", "#! \t/bin/sh -e\n": "/bin/sh", "#!/bin/sh\t-e\n": "/bin/sh", "#!/a\fb c\n": "/a\fb", "#!/a\vb\n": "/a\vb", "#!/a\rb\n": "/a\rb",
		"#!/a\u00a0b\n": "/a\u00a0b", "#!/a\x00b\n": "/a", "#!\n/bin/sh\n": "", "#!bin/sh\n": "", "#!\f/bin/sh\n": "", " #!/bin/sh\n": "", "": "", "#!": "",
		"#!/" + strings.Repeat("a", 260): "", "#!/b " + strings.Repeat("a", 300): "/b",
		"#!/usr/bin/env node\n": bin + "/node", "#!/usr/bin/env -S A=1 node --x\n": bin + "/node", "#!/usr/bin/env none\n": "",
	} {
		file := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(file, []byte(head), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _ := interpreter(file, []string{"PATH=" + bin}); got != want {
			t.Errorf("interpreter of %q = %q, want %q", head, got, want)
		}
	}
}
