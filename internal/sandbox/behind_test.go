package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/besidetmp"
	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// The installation of a program is found before it is started, and is empty if the program
// belongs to the system, to the folders of PATH with their version managers, or to the
// project.
func TestBehind(t *testing.T) {
	const script = "#!/bin/sh\n"
	for _, c := range []struct {
		name    string
		files   map[string]string // "-> to" for a link
		command string
		path    string // of yaya
		env     string // PATH of the program, "" for yaya's
		want    string
	}{
		{name: "of the system", command: "/bin/sh"},
		{name: "a folder outside the home folder", files: map[string]string{"rt/bin/tool": script, "rt/data": ""}, command: "DIR/rt/bin/tool", want: "DIR/rt"},
		{name: "the same by a link", files: map[string]string{"rt/bin/tool": script, "x/tool": "-> ../rt/bin/tool"}, command: "DIR/x/tool", want: "DIR/rt"},
		{name: "as an interpreter", files: map[string]string{"rt/bin/sh": script, "x/tool": "#!DIR/rt/bin/sh\n"}, command: "DIR/x/tool", want: "DIR/x/tool DIR/rt"},
		{name: "by the PATH of its entry", files: map[string]string{"rt/bin/sh": script, "x/tool": "#!/usr/bin/env sh\n"}, command: "DIR/x/tool", env: "DIR/rt/bin", want: "DIR/x/tool DIR/rt"},
		{name: "on the PATH, with what is beside it", files: map[string]string{"rt/bin/tool": script}, command: "DIR/rt/bin/tool", path: "DIR/rt/bin", want: "DIR/rt"},
		{name: "a program in the home folder", files: map[string]string{"home/app/bin/tool": script, "home/app/data": ""}, command: "DIR/home/app/bin/tool", want: "DIR/home/app/bin/tool"},
		{name: "with Python's libraries", files: map[string]string{"home/app/bin/tool": script, "home/app/lib/python3.12/x": ""}, command: "DIR/home/app/bin/tool", want: "DIR/home/app"},
		{name: "a venv of the project", files: map[string]string{"home/p/v/pyvenv.cfg": "", "home/p/v/bin/python": "-> DIR/home/.local/share/uv/python/3/bin/python", "home/.local/share/uv/python/3/bin/python": script}, command: "DIR/home/p/v/bin/python", path: "DIR/home/.local/bin", want: ""},
		{name: "a venv elsewhere", files: map[string]string{"home/v/pyvenv.cfg": "", "home/v/bin/python": "-> /bin/sh"}, command: "DIR/home/v/bin/python", want: "DIR/home/v"},
		{name: "npx of nvm", files: map[string]string{"home/.nvm/versions/node/22/bin/npx": "#!/usr/bin/env node\n", "home/.nvm/versions/node/22/bin/node": script}, command: "DIR/home/.nvm/versions/node/22/bin/npx", path: "DIR/home/.nvm/versions/node/22/bin"},
		{name: "npx of fnm", files: map[string]string{"shell": "-> home/.local/share/fnm/versions/22", "home/.local/share/fnm/versions/22/bin/npx": "#!/usr/bin/env node\n", "home/.local/share/fnm/versions/22/bin/node": script}, command: "DIR/shell/bin/npx", path: "DIR/shell/bin"},
		{name: "uvx", files: map[string]string{"home/.local/bin/uvx": script}, command: "DIR/home/.local/bin/uvx", path: "DIR/home/.local/bin"},
		{name: "python of pyenv", files: map[string]string{"home/.pyenv/shims/python": script}, command: "DIR/home/.pyenv/shims/python", path: "DIR/home/.pyenv/shims"},
		{name: "credentials", files: map[string]string{"home/.ssh/tool": script}, command: "DIR/home/.ssh/tool"},
		{name: "what is not there", command: "DIR/none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := besidetmp.Dir(t)
			in := func(s string) string { return strings.ReplaceAll(s, "DIR", dir) }
			err := os.MkdirAll(dir+"/home/p", 0o700)
			for name, data := range c.files {
				at := filepath.Join(dir, name)
				err = errors.Join(err, os.MkdirAll(filepath.Dir(at), 0o700))
				if to, is := strings.CutPrefix(data, "-> "); is {
					err = errors.Join(err, os.Symlink(in(to), at))
				} else {
					err = errors.Join(err, os.WriteFile(at, []byte(in(data)), 0o700))
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			path, env := in(c.path)+":/usr/bin:/bin", in(c.env)+":"+in(c.path)+":/usr/bin:/bin"
			got := Behind(dir+"/home", in(c.command), []string{"PATH=" + env}, RuntimesOf(dir+"/home", path), []string{dir + "/home/p"})
			if want := strings.Fields(in(c.want)); !slices.Equal(got, want) {
				t.Errorf("Behind() = %q, want %q", got, want)
			}
		})
	}
}

// Because of a program, only the paths in the policy are shown.
func TestOnlyBehind(t *testing.T) {
	shown := []inside.Rule{{Path: "/x/rt/lib", Access: inside.Read}}
	for _, c := range []struct {
		name   string
		behind []string
		ok     bool
	}{
		{"no bound", nil, true},
		{"nothing", []string{}, false},
		{"another", []string{"/x/r"}, false},
		{"it", []string{"/x/rt/lib"}, true},
		{"a folder above", []string{"/x/rt"}, true},
		{"a file in it", []string{"/x/rt/lib/a"}, false},
	} {
		r := &Run{policy: Policy{Behind: c.behind}}
		if err := r.onlyBehind(shown); (err == nil) != c.ok {
			t.Errorf("%s: onlyBehind() = %v, want it to be refused: %v", c.name, err, !c.ok)
		}
	}
}
