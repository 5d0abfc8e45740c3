package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A command has of the environment what programs of its profile have, and what --env
// names; the setting sandbox.backend counts.
func TestSandboxRunSettings(t *testing.T) {
	needNamespaces(t)
	t.Setenv("RUN_TOKEN", "s3cret")
	t.Setenv("NAMED_TOKEN", "named")
	t.Setenv("SET_TOKEN", "set")
	t.Setenv("SSL_CERT_FILE", "/etc/company.pem")
	b := newBox(t)
	ws := filepath.Join(b.dir, "ws")
	if err := os.MkdirAll(ws, 0o700); err != nil {
		t.Fatal(err)
	}
	show := []string{"--", "sh", "-c", `echo "$RUN_TOKEN/$NAMED_TOKEN/$SET_TOKEN"; test -n "$PATH" && test "$SSL_CERT_FILE" = /etc/company.pem`}
	run := func(flags ...string) (string, string, int) {
		return b.in(ws, append([]string{"sandbox", "run"}, flags...)...)
	}
	b.must("config", "set", "plugin.tool_shell.env", `["SET_TOKEN"]`)
	for _, c := range []struct {
		name  string
		flags []string
		want  string
	}{
		{"command", nil, "//set\n"},
		{"check", []string{"--profile", "check"}, "//set\n"},
		{"server", []string{"--profile", "server"}, "//\n"},
		{"plugin", []string{"--profile", "plugin"}, "//\n"},
		{"browser", []string{"--profile", "browser"}, "//\n"},
		{"guarded", []string{"--profile", "guarded"}, "s3cret/named/set\n"},
		{"server, a named one", []string{"--profile", "server", "--env", "NAMED_TOKEN"}, "/named/\n"},
		{"command, a named one", []string{"--env", "NAMED_TOKEN"}, "/named/set\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if out, errOut, code := run(append(c.flags, show...)...); out != c.want || code != 0 {
				t.Errorf("got %q, %q, %d; want %q, 0", out, errOut, code, c.want)
			}
		})
	}
	if _, errOut, code := run("--env", "NOT_THERE", "--", "true"); code != exitUsage || !strings.Contains(errOut, "the variable NOT_THERE is not set") {
		t.Errorf("a variable that is not set: %q, %d", errOut, code)
	}
	b.must("config", "set", "sandbox.backend", "landlock")
	if _, errOut, _ := run("--", "true"); !strings.Contains(errOut, "the network is off (back end landlock; yaya sandbox says more)\n") || strings.Count(errOut, "\n") != 1 || len(errOut) > 160 {
		t.Errorf("with sandbox.backend landlock it says %q, want one short line with that back end", errOut)
	}
	b.must("config", "set", "sandbox.backend", "off")
	if _, errOut, code := run("--", "true"); code != exitError || !strings.Contains(errOut, "the sandbox cannot enforce hidden files") || !strings.Contains(errOut, "(back end off); run: yaya config set sandbox.backend auto") {
		t.Errorf("with sandbox.backend off: %q, %d; want a refusal", errOut, code)
	}
}

// A program finds the caches that it left in the same folder; another program, or the
// same one in another folder, does not.
func TestSandboxRunCaches(t *testing.T) {
	needNamespaces(t)
	b := newBox(t)
	for _, dir := range []string{"a", "b"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(b.dir, dir), 0o700), os.MkdirAll(filepath.Join(b.dir, "bin"), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"one", "two"} {
		script := "#!/bin/sh\nls $XDG_CACHE_HOME\necho x > $XDG_CACHE_HOME/left\nls ${XDG_CACHE_HOME%/*} 2>/dev/null; true\n"
		writeProgram(t, filepath.Join(b.dir, "bin", name), script)
	}
	for _, c := range []struct {
		name, dir, profile string
		argv               []string
		found              bool
	}{
		{"the first", "a", "command", []string{"one"}, false},
		{"again", "a", "command", []string{"one", "other"}, true},
		{"another program", "a", "command", []string{"two"}, false},
		{"another folder", "b", "command", []string{"one"}, false},
		{"another profile", "a", "server", []string{"one", "-y", "pkg"}, false},
		{"what the same fetches", "a", "server", []string{"one", "-y", "pkg", "more"}, true},
		{"another that the same fetches", "a", "server", []string{"one", "-y", "other"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"sandbox", "run", "--profile", c.profile, "--", filepath.Join(b.dir, "bin", c.argv[0])}, c.argv[1:]...)
			if c.profile == "server" {
				args = append([]string{"sandbox", "run", "--profile", c.profile, "--read", filepath.Join(b.dir, "bin")}, args[4:]...)
			}
			out, errOut, code := b.in(filepath.Join(b.dir, c.dir), args...)
			if found := strings.HasPrefix(out, "left\n"); found != c.found || code != 0 {
				t.Errorf("found what is left = %v, want %v: %q, %q, %d", found, c.found, out, errOut, code)
			}
			if n := strings.Count(out, "run-"); n > 1 {
				t.Errorf("caches of others are seen: %q", out)
			}
		})
	}
}

// GF-7: sandbox run ends as env(1) and shells do with a program that cannot be started.
func TestSandboxRunExitCodes(t *testing.T) {
	needNamespaces(t)
	b := newBox(t)
	ws, bin := filepath.Join(b.dir, "ws"), filepath.Join(b.dir, "bin")
	if err := errors.Join(os.MkdirAll(ws, 0o700), os.MkdirAll(bin, 0o700)); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]struct {
		text string
		mode os.FileMode
	}{
		"ws/plain": {"text", 0o600}, "ws/format": {"text", 0o700}, "ws/interpreter": {"#!/nonexistent/sh\n", 0o700}, "bin/onpath": {"text", 0o600},
	} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(f.text), f.mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	for name, c := range map[string]struct {
		command string
		want    int
	}{
		"no such command":         {"nosuch", exitNotFound},
		"no such file":            {"./nosuch", exitNotFound},
		"no such interpreter":     {"./interpreter", exitNotFound},
		"not executable":          {"./plain", exitCannotRun},
		"not executable, on PATH": {"onpath", exitCannotRun},
		"not a program":           {"./format", exitCannotRun},
		"a folder":                {"/tmp", exitCannotRun},
		"below a file":            {"./plain/x", exitCannotRun},
	} {
		if _, errOut, code := b.in(ws, "sandbox", "run", "--", c.command); code != c.want || !strings.Contains(errOut, strings.TrimPrefix(c.command, "./")) {
			t.Errorf("%s: got %d, %q; want %d and the command", name, code, errOut, c.want)
		}
	}
}

// GF-9: in a sandbox yaya's own folders are hidden from yaya, too, which says so.
func TestYayaInASandboxSaysSo(t *testing.T) {
	needNamespaces(t)
	b := newBox(t)
	b.must("config", "list") // the folders are there
	ws := filepath.Join(b.dir, "ws")
	if err := os.MkdirAll(ws, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, profile := range []string{"guarded", "command"} {
		args := append([]string{"sandbox", "run", "--profile", profile, "--", b.bin}, b.args("mcp", "list")...)
		if _, errOut, code := b.in(ws, args...); code != exitError || !strings.Contains(errOut, "run yaya outside the sandbox") {
			t.Errorf("%s: got %d, %q; want that yaya's folders are hidden there", profile, code, errOut)
		}
	}
	// A folder that cannot be written for another reason is none of yaya's.
	if _, errOut, _ := b.in(ws, "backup", "/proc/x"); strings.Contains(errOut, "outside the sandbox") {
		t.Errorf("another folder: got %q", errOut)
	}
}

// Git's configuration stays read-only in each folder that --write names, in any profile,
// and an empty path, as of a variable that is not set, names nothing.
func TestSandboxRunWrites(t *testing.T) {
	needNamespaces(t)
	besideTmp(t)
	b := newBox(t)
	top := filepath.Join(b.dir, "repo")
	hook, sub := filepath.Join(top, ".git", "hooks", "pre-commit"), filepath.Join(top, "sub")
	for _, err := range []error{os.MkdirAll(sub, 0o700), os.MkdirAll(filepath.Dir(hook), 0o700), os.WriteFile(hook, []byte("ours"), 0o700), os.WriteFile(filepath.Join(top, ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o600), os.MkdirAll(filepath.Join(top, ".git", "objects"), 0o700), os.MkdirAll(filepath.Join(top, ".git", "refs"), 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, flags := range [][]string{{"--write", "../.git"}, {"--write", top}, {"--profile", "server", "--write", top}} {
		_, errOut, code := b.in(sub, append(append([]string{"sandbox", "run"}, flags...), "--", "sh", "-c", "echo x > "+top+"/.git/index && echo evil > "+hook)...)
		if data, err := os.ReadFile(hook); err != nil || string(data) != "ours" || code == 0 {
			t.Errorf("%v: the hook is %q, %v, exit code %d (%s); want it as it was", flags, data, err, code, errOut)
		}
		if err := os.Remove(filepath.Join(top, ".git", "index")); err != nil {
			t.Errorf("%v: the index cannot be written: %v", flags, err)
		}
	}
	for _, flag := range []string{"--read", "--write"} {
		if _, errOut, code := b.in(sub, "sandbox", "run", "--profile", "server", flag, "", "--", "true"); code == 0 || !strings.Contains(errOut, flag+": the path is empty") {
			t.Errorf("%s '': got %q, exit code %d; want a refusal", flag, errOut, code)
		}
	}
}

// No flag gives a program the whole file system, however the path is written: that would
// bound nothing, and profile guarded says so.
func TestSandboxRunWholeFileSystem(t *testing.T) {
	needNamespaces(t)
	b := newBox(t)
	b.make("ws/")
	ws := filepath.Join(b.dir, "ws")
	if err := os.Symlink("/", filepath.Join(ws, "link")); err != nil {
		t.Fatal(err)
	}
	up := strings.Repeat("../", 40)
	for _, flag := range []string{"--read", "--write"} {
		for _, path := range []string{"/", "//", "/usr/..", up, up + ".", "link", "./link/", filepath.Join(ws, "link"), filepath.Join(ws, "link/usr/.."), "/proc/self/root"} {
			for _, profile := range []string{"command", "server"} {
				out, errOut, code := b.in(ws, "sandbox", "run", "--profile", profile, flag, path, "--", "echo", "ran")
				if want := flag + ": "; code != exitUsage || out != "" || !strings.Contains(errOut, want) || !strings.Contains(errOut, "is the whole file system: name the files and folders that are needed, or use profile guarded") {
					t.Errorf("%s %s, profile %s: got %q, %q, %d; want a refusal that names the remedy", flag, path, profile, out, errOut, code)
				}
			}
		}
	}
	if out, err := b.run("config", "set", "sandbox.command.write", `["/"]`); err == nil || !strings.Contains(out, "sandbox.command.write: / is the whole file system") {
		t.Errorf("config set: got %q, %v; want a refusal", out, err)
	}
}

// A check builds with what a command has fetched, and a server has nothing of it.
func TestSandboxRunChecksShareCaches(t *testing.T) {
	needNamespaces(t)
	b := newBox(t)
	b.make("ws/")
	for i, c := range []struct {
		profile, script string
		want            string
	}{
		{"command", "echo fetched > $XDG_CACHE_HOME/it", ""},
		{"check", "cat $XDG_CACHE_HOME/it", "fetched\n"},
		{"server", "cat $XDG_CACHE_HOME/it || echo none", "none\n"},
	} {
		if out, errOut, code := b.in(filepath.Join(b.dir, "ws"), "sandbox", "run", "--profile", c.profile, "--", "sh", "-c", c.script); out != c.want || code != 0 {
			t.Errorf("run %d in %s: got %q, %q, exit code %d; want %q", i, c.profile, out, errOut, code, c.want)
		}
	}
}

// ~ in a path of a flag is the home folder, as in an entry, whichever shell has
// left it there.
func TestSandboxRunTilde(t *testing.T) {
	needNamespaces(t)
	b := newBox(t)
	notes := filepath.Join(b.dir, "notes")
	if err := errors.Join(os.MkdirAll(notes, 0o700), os.WriteFile(filepath.Join(notes, "a"), []byte("one\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	ws := filepath.Join(b.dir, "ws")
	if err := os.MkdirAll(ws, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(notes, "a")
	if out, errOut, code := b.in(ws, "sandbox", "run", "--profile", "server", "--read", "~/notes", "--", "cat", file); code != 0 || out != "one\n" {
		t.Errorf("--read: got %q, %q, %d; want the file", out, errOut, code)
	}
	if out, errOut, code := b.in(ws, "sandbox", "run", "--profile", "server", "--write=~/notes", "--", "sh", "-c", "echo two > "+file+" && cat "+file); code != 0 || out != "two\n" {
		t.Errorf("--write: got %q, %q, %d; want the file written", out, errOut, code)
	}
}
