package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// GF-10: what mcp add writes does not depend on the folder in which yaya runs.
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
		{"a command of this folder", nil, []string{"./server.sh", "x"}, []string{"", ws + "/server.sh", "x"}, "./server.sh is written as " + ws + "/server.sh"},
		{"a command that is not there", nil, []string{"./none"}, []string{"", ws + "/none"}, "./none is written as " + ws + "/none"},
		{"a command below it", nil, []string{"data/run.sh"}, []string{"", ws + "/data/run.sh"}, "is written as"},
		{"a command on PATH", nil, []string{"sh", "-c", "exit"}, []string{"", "sh", "-c", "exit"}, ""},
		{"a folder", nil, []string{"sh", "."}, []string{"", "sh", ws}, ". is written as " + ws},
		{"a folder below", nil, []string{"sh", "./data", "../ws", "./nowhere"}, []string{"", "sh", ws + "/data", ws, "./nowhere"}, "./data is written as"},
		{"a file without a dot", nil, []string{"sh", "server.js"}, []string{"", "sh", "server.js"}, "server.js stays as it is"},
		{"a whole path", nil, []string{"/bin/sh", "/tmp"}, []string{"", "/bin/sh", "/tmp"}, ""},
		{"a variable", nil, []string{"${HOME}/x", "$X/y"}, []string{"", "${HOME}/x", "$X/y"}, ""},
		{"a working directory", []string{"--cwd", "/tmp"}, []string{"./server.sh", "."}, []string{"/tmp", "./server.sh", "."}, ""},
		{"a relative working directory", []string{"--cwd", "."}, []string{"./server.sh", "server.js"}, []string{ws, "./server.sh", "server.js"}, "its working directory is " + ws},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := "s" + string(rune('a'+i))
			out, errOut, code := b.in(ws, slices.Concat([]string{"mcp", "add"}, c.flags, []string{name, "--"}, c.words)...)
			if code != 0 || !strings.Contains(out, c.note) || c.note == "" && (strings.Contains(out, "written as") || strings.Contains(out, "stays as it is")) {
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
