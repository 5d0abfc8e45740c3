package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder that a sandbox hides or protects, or that holds one, is not written
// because a command is started there; one that is named is.
func TestSandboxRunWorkspaces(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	b := newBox(t)
	b.make(".ssh/id", ".config/gh/hosts.yml", ".profile", "ws/sub/f", "away/f", "c/config.toml", "d/x")
	for _, dir := range []string{"c", "d"} {
		if err := os.Chmod(filepath.Join(b.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(b.dir, "c", "config.toml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(b.dir, name) }
	const cure = "cd to a project, or name what the command may write with --write PATH"
	for _, c := range []struct {
		name, dir string
		flags     []string
		want      string // a part of the refusal; "" runs
	}{
		{"a project", in("ws"), nil, ""},
		{"a folder in it", in("ws/sub"), nil, ""},
		{"the home folder", b.dir, nil, "is your home folder, and is not written because a command starts there: " + cure},
		{"credentials", in(".ssh"), nil, "is a place of credentials"},
		{"in credentials", in(".config/gh"), nil, cure},
		{"above credentials", in(".config"), nil, "holds " + in(".config/gh") + " (a place of credentials)"},
		{"above the home folder", filepath.Dir(b.dir), nil, cure},
		{"everything", "/", nil, "is the whole file system"},
		{"the system", "/etc", nil, "is a folder of the system"},
		{"in the system", "/usr/share", nil, "lies in /usr (a folder of the system)"},
		{"yaya's own", in("d"), nil, "yaya keeps its tools out of its own folders"},
		{"the home folder, with another to write", b.dir, []string{"--write", in("away")}, ""},
		{"the home folder, named", b.dir, []string{"--write", "."}, ""},
		{"credentials, with another to write", in(".ssh"), []string{"--write", in("away")}, "is a place of credentials"},
	} {
		for _, profile := range []string{"command", "check"} {
			args := append([]string{"sandbox", "run", "--profile", profile}, c.flags...)
			out, errOut, code := b.in(c.dir, append(args, "--", "sh", "-c", "echo ran; cat .ssh/id id 2>/dev/null; echo written > "+in(".profile")+" 2>/dev/null; true")...)
			profileNow, err := os.ReadFile(in(".profile"))
			if err == nil {
				err = os.WriteFile(in(".profile"), nil, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case c.want != "" && (code != exitError || !strings.Contains(errOut, c.want) || strings.Contains(out, "ran")):
				t.Errorf("%s, profile %s: got %q, %q, %d; want %q", c.name, profile, out, errOut, code, c.want)
			case c.want == "" && (code != 0 || !strings.HasPrefix(out, "ran")):
				t.Errorf("%s, profile %s: got %q, %q, %d; want it to run", c.name, profile, out, errOut, code)
			case strings.Contains(out, "of .ssh") || strings.Contains(string(profileNow), "written") != (len(c.flags) > 0 && c.flags[1] == "."):
				t.Errorf("%s, profile %s: got %q, want no credentials, and .profile written if the folder was named", c.name, profile, out)
			}
		}
	}
}

// Hosts that somebody names and the back end cannot give refuse the start.
func TestSandboxRunHostsAreRequired(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	b := newBox(t)
	b.make("ws/f")
	b.must("config", "set", "sandbox.backend", "landlock")
	for _, profile := range []string{"command", "check", "server"} {
		out, errOut, code := b.in(filepath.Join(b.dir, "ws"), "sandbox", "run", "--profile", profile, "--host", "example.com", "--", "echo", "ran")
		if code != exitError || out != "" || !strings.Contains(errOut, "the sandbox cannot reach hosts here, because its network is off (back end landlock); run: yaya config set sandbox.backend auto") {
			t.Errorf("profile %s: got %q, %q, %d; want a refusal that says why", profile, out, errOut, code)
		}
	}
	if out, errOut, code := b.in(filepath.Join(b.dir, "ws"), "sandbox", "run", "--profile", "guarded", "--host", "example.com", "--", "echo", "ran"); code != 0 {
		t.Errorf("guarded, which has every host: got %q, %q, %d", out, errOut, code)
	}
}
