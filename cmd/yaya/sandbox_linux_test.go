package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// needNamespaces skips where a command cannot have a sandbox worth testing.
func needNamespaces(t *testing.T) {
	t.Helper()
	if r := sandbox.Probe(); r.Best != sandbox.Namespaces {
		t.Skip(r.Why)
	}
}

// yaya sandbox says what a program finds when it tries, in both formats.
func TestSandboxReport(t *testing.T) {
	b := newBox(t)
	var loose map[string]any
	if err := json.Unmarshal([]byte(b.must("sandbox", "--json")), &loose); err != nil {
		t.Fatal(err)
	}
	want := sandbox.Probe()
	if loose["backend"] != want.Best || loose["landlock"] != float64(want.Landlock) {
		t.Errorf("report: back end %v, Landlock %v; want %s, %d", loose["backend"], loose["landlock"], want.Best, want.Landlock)
	}
	text := b.must("sandbox")
	for _, part := range append(append([]string{want.System, want.User}, sandbox.Profiles()...), sandbox.Backends()...) {
		if !strings.Contains(text, part) {
			t.Errorf("yaya sandbox does not name %q:\n%s", part, text)
		}
	}
}

func TestSandboxRun(t *testing.T) {
	needNamespaces(t)
	b := newBox(t)
	ws := filepath.Join(b.dir, "ws")
	for path, data := range map[string]string{"d/keys/k": "key", "c/mcp.json": "{}", "named/f": "named", "phrase": "correct horse", ".ssh/id": "id", "ws/.git/config": "[core]", "ws/.git/HEAD": "x"} {
		path = filepath.Join(b.dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(data), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		flags  []string
		script string
		out    string // all of standard output
		err    string // a part of standard error
		code   int
	}{
		{"its output and code", nil, "echo out; echo err >&2; exit 7", "out\n", "err\n", 7},
		{"a signal", nil, "kill -KILL $$", "", "", 128 + 9},
		{"the workspace", nil, "echo x > new && cat new && pwd", "x\n" + ws + "\n", "", 0},
		{"yaya's keys", nil, "cat ../d/keys/k || exit 9", "", "keys/k", 9},
		{"yaya's keys, guarded", []string{"--profile", "guarded"}, "cat ../d/keys/k || exit 9", "", "keys/k", 9},
		{"yaya's configuration, guarded", []string{"--profile", "guarded"}, "echo x > ../c/mcp.json || exit 9", "", "mcp.json", 9},
		{"the passphrase of the secrets", nil, "cat ../phrase || exit 9", "", "phrase", 9},
		{"the passphrase, guarded", []string{"--profile", "guarded"}, "cat ../phrase || exit 9", "", "phrase", 9},
		{"credentials", nil, "cat ~/.ssh/id || exit 9", "", "", 9},
		{"a folder that was not named", []string{"--profile", "plugin", "--write", "."}, "cat ../named/f || exit 9", "", "", 9},
		{"a folder that was named", []string{"--profile", "plugin", "--write", ".", "--read", "../named"}, "cat ../named/f; echo x > ../named/f || exit 9", "named", "", 9},
		{"git", nil, "echo x > .git/HEAD; echo x > .git/config || exit 9", "", "config", 9},
		{"a host", nil, `exec 3<>/dev/tcp/127.0.0.1/3128 && printf 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n' >&3 && head -1 <&3`, "HTTP/1.1 403 Forbidden\r\n", "yaya: kept from reaching example.com:443: it is not among the allowed hosts (to allow it: --host example.com)", 0},
		{"flags of the command", nil, `[ "$0" = --profile ] && echo "$0"`, "--profile\n", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.t = t
			if _, err := exec.LookPath("bash"); err != nil {
				t.Skip(err)
			}
			args := append(append([]string{"sandbox", "run"}, c.flags...), "--", "bash", "-c", c.script)
			if c.name == "flags of the command" {
				args = append(args, "--profile")
			}
			out, errOut, code := b.in(ws, args...)
			if out != c.out || !strings.Contains(errOut, c.err) || code != c.code {
				t.Errorf("got %q, %q, %d; want %q, %q, %d", out, errOut, code, c.out, c.err, c.code)
			}
		})
	}
	for _, c := range []struct {
		name string
		args []string
		want string
		code int
	}{
		{"yaya's own folder", []string{"--read", filepath.Join(b.dir, "d"), "--", "true"}, "belongs to yaya itself", exitError},
		{"a URL for a host", []string{"--host", "https://example.com", "--", "true"}, `host "https://example.com"`, exitUsage},
		{"a file that is not there", []string{"--read", "nowhere", "--", "true"}, "nowhere", exitUsage},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.t = t
			if _, errOut, code := b.in(ws, append([]string{"sandbox", "run"}, c.args...)...); code != c.code || !strings.Contains(errOut, c.want) {
				t.Errorf("got %q, %d; want %q, %d", errOut, code, c.want, c.code)
			}
		})
	}
}

// SIGTERM reaches the command, and kill -9 of yaya leaves nothing of it.
func TestSandboxRunEnds(t *testing.T) {
	needNamespaces(t)
	for name, sig := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "kill -9": syscall.SIGKILL} {
		for _, profile := range []string{"check", "guarded"} {
			t.Run(name+"/"+profile, func(t *testing.T) {
				b := newBox(t)
				ws := filepath.Join(b.dir, "ws")
				fifo := filepath.Join(ws, "fifo")
				if err := errors.Join(os.MkdirAll(filepath.Join(b.dir, "d"), 0o700), os.Mkdir(ws, 0o700), unix.Mkfifo(fifo, 0o600)); err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(t.Context(), b.bin, b.args("sandbox", "run", "--profile", profile, "--", "sh", "-c",
					`exec 3>fifo; trap 'echo got TERM >&3; exit 4' TERM; setsid sleep 300 & echo up >&3; while :; do wait; done`)...)
				cmd.Dir = ws
				cmd.Env = append(os.Environ(), "HOME="+b.dir)
				var errOut bytes.Buffer
				cmd.Stderr = &errOut
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				f, err := os.Open(fifo) // waits until it is opened to be written
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				buf := make([]byte, 100)
				if n, err := f.Read(buf); err != nil || string(buf[:n]) != "up\n" {
					t.Fatalf("read %q, %v: %s", buf[:n], err, errOut.String())
				}
				if err := cmd.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait()
				if err := f.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
					t.Fatalf("SetReadDeadline = %v, want no error, or %v", err, os.ErrNoDeadline)
				}
				var rest bytes.Buffer
				if _, err := rest.ReadFrom(f); err != nil { // its end: nobody has it open
					t.Errorf("the pipe: %v", err)
				}
				if sig == syscall.SIGTERM && (rest.String() != "got TERM\n" || cmd.ProcessState.ExitCode() != 4) {
					t.Errorf("the command said %q and ended with %d, want its answer to SIGTERM and 4: %s", rest.String(), cmd.ProcessState.ExitCode(), errOut.String())
				}
			})
		}
	}
}

// The first process of a sandbox begins its work before anything of yaya that is slow
// to initialise, or each start would pay for it.
func TestSandboxBeginsEarly(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Close(pair[1]); err != nil { // nobody sends a plan
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(pair[0]), "control")
	defer theirs.Close()
	cmd := exec.CommandContext(t.Context(), binary(t), "__sandbox")
	cmd.Env = []string{inside.Env + "=3", "GODEBUG=inittrace=1"}
	cmd.ExtraFiles = []*os.File{theirs}
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 125 {
		t.Fatalf("exit code %d (%v), want 125: no plan came\n%s", code, err, out)
	}
	for _, slow := range []string{"jsonschema", "yaya/kernel", "yaya/gateway", "yaya/mcpbridge", "init net/http @"} {
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "init ") && strings.Contains(line, slow) {
				t.Errorf("initialised first: %s", line)
			}
		}
	}
	if n := bytes.Count(out, []byte("init ")); n < 10 {
		t.Errorf("%d packages were traced; the trace is not what it was", n)
	}
}
