package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A variable of a server is a path of the current folder under the same rule.
func TestAddWritesWholeVariables(t *testing.T) {
	b := newBox(t)
	ws := filepath.Join(b.dir, "ws")
	if err := os.MkdirAll(filepath.Join(ws, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	out, errOut, code := b.in(ws, "mcp", "add", "-e", "A=./data", "-e", "DATA_DIR=data", "-e", "NAME=data", "-e", "MODE=none", "s", "sh")
	if code != 0 || !strings.Contains(out, "A: ./data is saved as "+ws+"/data") || !strings.Contains(out, "NAME: data is unchanged") {
		t.Errorf("got %d, %q, %q; want notes for A and NAME", code, out, errOut)
	}
	var file struct {
		All map[string]struct{ Env map[string]string } `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(b.mcpFile()), &file); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"A": ws + "/data", "DATA_DIR": ws + "/data", "NAME": "data", "MODE": "none"}
	if got := file.All["s"].Env; !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// GF-10: the entry that mcp add writes does not depend on the folder in which yaya runs.
func TestAddWritesWholePaths(t *testing.T) {
	b := newBox(t)
	ws := filepath.Join(b.dir, "ws")
	if err := os.MkdirAll(filepath.Join(ws, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"server.sh", "server.js", "data/run.sh"} {
		if err := os.WriteFile(filepath.Join(ws, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range []struct {
		name  string
		flags []string
		words []string
		want  []string // the command line, "" for no cwd first
		note  string
	}{
		{"a command of this folder", nil, []string{"./server.sh", "x"}, []string{"", ws + "/server.sh", "x"}, "./server.sh is saved as " + ws + "/server.sh"},
		{"a command that is not there", nil, []string{"./none"}, []string{"", ws + "/none"}, "./none is saved as " + ws + "/none"},
		{"a command below it", nil, []string{"data/run.sh"}, []string{"", ws + "/data/run.sh"}, "is saved as"},
		{"a command on PATH", nil, []string{"sh", "-c", "exit"}, []string{"", "sh", "-c", "exit"}, ""},
		{"a folder", nil, []string{"sh", "."}, []string{"", "sh", ws}, ". is saved as " + ws},
		{"a folder below", nil, []string{"sh", "./data", "../ws", "./nowhere"}, []string{"", "sh", ws + "/data", ws, "./nowhere"}, "./data is saved as"},
		{"a file without a dot", nil, []string{"sh", "server.js"}, []string{"", "sh", "server.js"}, "server.js is unchanged"},
		{"a folder without a dot", nil, []string{"sh", "data"}, []string{"", "sh", "data"}, "data is unchanged, although this folder has a folder"},
		{"a flag of paths", nil, []string{"sh", "--repository", "data"}, []string{"", "sh", "--repository", ws + "/data"}, "data is saved as " + ws + "/data"},
		{"a longer flag of paths", nil, []string{"sh", "--config-file", "server.js"}, []string{"", "sh", "--config-file", ws + "/server.js"}, "server.js is saved as"},
		{"a flag of paths with its value", nil, []string{"sh", "--root=data"}, []string{"", "sh", "--root=" + ws + "/data"}, "data is saved as"},
		{"a dotted value of a flag", nil, []string{"sh", "--x=./data"}, []string{"", "sh", "--x=" + ws + "/data"}, "./data is saved as"},
		{"another flag", nil, []string{"sh", "--name", "data", "-d", "data"}, []string{"", "sh", "--name", "data", "-d", "data"}, "data is unchanged"},
		{"a flag of paths, and nothing there", nil, []string{"sh", "--root", "none", "--file=none"}, []string{"", "sh", "--root", "none", "--file=none"}, ""},
		{"a whole path", nil, []string{"/bin/sh", "/tmp"}, []string{"", "/bin/sh", "/tmp"}, ""},
		{"a variable", nil, []string{"${HOME}/x", "$X/y"}, []string{"", "${HOME}/x", "$X/y"}, ""},
		{"a working directory", []string{"--cwd", "/tmp"}, []string{"./server.sh", "."}, []string{"/tmp", "./server.sh", "."}, ""},
		{"a relative working directory", []string{"--cwd", "."}, []string{"./server.sh", "server.js"}, []string{ws, "./server.sh", "server.js"}, "its working directory is " + ws},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := "s" + string(rune('a'+i))
			out, errOut, code := b.in(ws, slices.Concat([]string{"mcp", "add"}, c.flags, []string{name, "--"}, c.words)...)
			if code != 0 || !strings.Contains(out, c.note) || c.note == "" && (strings.Contains(out, "saved as") || strings.Contains(out, "is unchanged")) {
				t.Errorf("got %d, %q, %q; want the note %q", code, out, errOut, c.note)
			}
			var file struct {
				All map[string]struct {
					Command, Cwd string
					Args         []string
				} `json:"mcpServers"`
			}
			if err := json.Unmarshal([]byte(b.mcpFile()), &file); err != nil {
				t.Fatal(err)
			}
			x := file.All[name]
			if got := append([]string{x.Cwd, x.Command}, x.Args...); !slices.Equal(got, c.want) {
				t.Errorf("the entry is %q, want %q", got, c.want)
			}
		})
	}
}
