package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"

	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	descriptions "github.com/yaya-ai/yaya/plugins/remote"
)

// guideFiles are the documents whose commands readers type one after the other.
func guideFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../docs/guides/*.md")
	if err != nil || len(files) < 6 {
		t.Fatalf("docs/guides has %d documents, %v; want all", len(files), err)
	}
	return append([]string{"../../docs/START.md"}, files...)
}

// fenced is a block of code in a document. A comment before it says what a test does with it:
//
//	<!-- not run: REASON -->         it cannot run here
//	<!-- runs in the background -->  its program goes on until the document's end
type fenced struct {
	line       int
	language   string
	text       string
	notRun     string // the reason
	background bool
}

var (
	fence    = regexp.MustCompile("(?m)^( *)(```+)([a-z]*)$")
	notToRun = regexp.MustCompile(`^<!-- not run: (\S.*) -->$`)
)

func fences(t *testing.T, file string) (out []fenced) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var open *fenced
	mark, indent, before := "", "", ""
	for i, line := range strings.Split(string(data), "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case open != nil && strings.TrimSpace(line) == mark:
			out, open = append(out, *open), nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		case m != nil:
			indent, mark = m[1], m[2]
			open = &fenced{line: i + 1, language: m[3], background: before == "<!-- runs in the background -->"}
			if reason := notToRun.FindStringSubmatch(before); reason != nil {
				open.notRun = reason[1]
			}
		}
		before = line
	}
	if open != nil {
		t.Errorf("%s:%d: the block does not end", file, open.line)
	}
	return out
}

// Commands of START and of the guides do what the documents say: each document is read in a home
// of its own, from its first block to its last.
func TestGuides(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	ran, left := 0, 0
	for _, file := range guideFiles(t) {
		for _, f := range fences(t, file) {
			if f.language == "sh" || f.language == "console" {
				if f.notRun == "" {
					ran++
				} else {
					left++
					t.Logf("%s:%d is not run: %s", filepath.Base(file), f.line, f.notRun)
				}
			}
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			follow(t, file, node)
		})
	}
	if ran < 35 || left > 13 {
		t.Errorf("%d blocks are run and %d are not, want at least 35, and at most 13 that are not", ran, left)
	}
}

// follow runs the commands of a document. yaya is the one that was built; npx starts the
// server that it would download, and nothing else of the network is used.
func follow(t *testing.T, file, node string) {
	b := newBox(t)
	bin := filepath.Join(b.dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	writeProgram(t, filepath.Join(bin, "yaya"), fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = serve ]; then shift; exec %s serve --listen %s --no-open \"$@\"; fi\nexec %s \"$@\"\n", b.bin, b.addr, b.bin))
	writeProgram(t, filepath.Join(bin, "npx"), fmt.Sprintf("#!/bin/sh\nshift 2\nexec %s %s \"$@\"\n", node, peerPath(t, "server-filesystem", "dist", "index.js")))
	b.env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "XDG_STATE_HOME=", "XDG_CONFIG_HOME=", "XDG_CACHE_HOME="}
	b.cwd = b.dir
	for _, f := range fences(t, file) {
		text := strings.ReplaceAll(f.text, "127.0.0.1:8787", b.addr)
		at := fmt.Sprintf("%s:%d", filepath.Base(file), f.line)
		switch {
		case f.notRun != "":
		case f.background:
			cmd := exec.Command("sh", "-c", "exec "+text) //nolint:forbidigo,noctx // it is stopped at the box's end
			cmd.Env, cmd.Dir = b.environ(), b.cwd
			b.background(cmd)
			waitFor(t, b.addr)
		case f.language == "sh":
			if out, err := b.shell(text); err != nil {
				t.Fatalf("%s: %v\n%s\n%s", at, err, text, out)
			}
		case f.language == "console":
			for _, step := range steps(text) {
				out, err := b.shell(step.command)
				if err != nil || !step.want.MatchString(strings.TrimSpace(out)) {
					t.Fatalf("%s: %s\ngot %v, %s\nwant %s", at, step.command, err, out, step.said)
				}
			}
		}
	}
}

// shell runs commands as a person types them, and returns what they print.
func (b *box) shell(commands string) (string, error) {
	cmd := exec.CommandContext(b.t.Context(), "sh", "-euc", commands)
	cmd.Env, cmd.Dir = b.environ(), b.cwd
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// step is a command of a console with what it prints, where … stands for anything.
type step struct {
	command, said string
	want          *regexp.Regexp
}

func steps(text string) (out []step) {
	for _, part := range strings.Split("\n"+strings.TrimRight(text, "\n"), "\n$ ")[1:] {
		command, said, _ := strings.Cut(part, "\n")
		var pattern []string
		for _, p := range strings.Split(strings.TrimSpace(said), "…") {
			pattern = append(pattern, regexp.QuoteMeta(p))
		}
		out = append(out, step{command, said, regexp.MustCompile(`(?s)^` + strings.Join(pattern, `.*`) + `$`)})
	}
	return out
}

func TestSteps(t *testing.T) {
	got := steps("$ a b\none … three\n$ c\n")
	if len(got) != 2 || got[0].command != "a b" || got[1].command != "c" || !got[0].want.MatchString("one two\nand three") || got[0].want.MatchString("one two") || !got[1].want.MatchString("") || got[1].want.MatchString("x") {
		t.Errorf("steps() = %+v, want two commands with what they print", got)
	}
}

// Blocks of data in START and the guides are read by the loaders that read the files; those of
// all other documents are at least JSON, TOML and YAML.
func TestDocumentedData(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	guides := guideFiles(t)
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]int{}
	for _, file := range append(files, guides...) {
		guide := strings.Contains(file, "/guides/") || strings.HasSuffix(file, "START.md")
		for _, f := range fences(t, file) {
			var v any
			err := error(nil)
			switch f.language {
			case "json":
				if err = readJSON(f.text); err == nil && strings.Contains(f.text, `"mcpServers"`) {
					err = readServers(f.text)
				}
			case "toml":
				if err = toml.Unmarshal([]byte(f.text), &v); err == nil && guide {
					err = b.readSettings(f.text)
				}
			case "yaml":
				err = yaml.Unmarshal([]byte(f.text), &v)
			case "":
				if guide {
					err = fmt.Errorf("it has no language")
				}
			}
			read[f.language]++
			if err != nil {
				t.Errorf("%s:%d: %v", file, f.line, err)
			}
		}
	}
	if read["json"] < 15 || read["toml"] < 12 || read["yaml"] < 1 {
		t.Errorf("got %v blocks, want all", read)
	}
}

// readJSON reads one value, or several as in a log of messages.
func readJSON(text string) error {
	dec := json.NewDecoder(strings.NewReader(text))
	for {
		var v any
		if err := dec.Decode(&v); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// readServers reads a file of servers as yaya does: an entry with a mistake is an error.
func readServers(text string) error {
	c, err := servers.Parse("mcp.json", []byte(text), servers.FormatYaya)
	if err != nil {
		return err
	}
	for _, s := range c.Invalid {
		return fmt.Errorf("server %s: %w", s.Name, s.Err)
	}
	if len(c.Warnings) > 0 {
		return errors.New(strings.Join(c.Warnings, "; "))
	}
	return nil
}

// readSettings reads a block of config.toml or plugin.toml, and sets every setting with the
// command, which checks more than its type.
func (b *box) readSettings(text string) error {
	if strings.Contains(text, "\nrun = ") {
		_, err := descriptions.ParseDescription([]byte(text))
		return err
	}
	root, err := os.OpenRoot(b.t.TempDir())
	if err != nil {
		return err
	}
	defer root.Close()
	s, err := config.Open(config.Options{Root: root, File: []byte(text), FileName: "config.toml"})
	if err != nil {
		return err
	}
	for _, e := range s.All("") {
		if e.Origin != config.FromFile {
			continue
		}
		if out, err := b.run("config", "set", e.Key, string(e.Value)); err != nil {
			return fmt.Errorf("yaya config set %s: %w: %s", e.Key, err, out)
		}
	}
	return nil
}
