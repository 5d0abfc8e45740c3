package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/yaya-ai/yaya/internal/besidetmp"
)

// listensAt listens at a path until the test ends.
func listensAt(t *testing.T, name string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	t.Cleanup(func() { _ = l.Close() })
}

// boundIn binds sockets in a folder with names that the tables of the kernel have in another
// form: relative, renamed, linked, with a line break, and in another network namespace.
func boundIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	in := func(name string) string {
		names = append(names, name)
		return filepath.Join(dir, name)
	}
	listensAt(t, in("plain"))
	listensAt(t, in("with\nbreak"))
	listensAt(t, in("two names"))
	listensAt(t, dir+"/before")
	if err := errors.Join(os.Link(dir+"/two names", in("hard")), os.Rename(dir+"/before", in("renamed"))); err != nil {
		t.Fatal(err)
	}
	const script = `import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
print("bound", flush=True)
sys.stdin.read()`
	bind := func(name, folder string, flags uintptr) {
		cmd := exec.CommandContext(t.Context(), "python3", "-c", script, name)
		cmd.Dir, cmd.SysProcAttr = folder, &syscall.SysProcAttr{Cloneflags: flags}
		end, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = end.Close(), cmd.Wait() })
		if _, err := fmt.Fscan(out, new(string)); err != nil {
			t.Fatalf("bind %s: %v", name, err)
		}
	}
	in("relative")
	bind("relative", dir, 0)
	if os.Geteuid() == 0 {
		bind(in("other namespace"), "/", unix.CLONE_NEWNET)
	}
	return names
}

// SEC-1: a sandbox sees no socket of another program that was there when it began, whatever the
// kernel's tables call it.
func TestSocketsOfOtherNames(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			dir := besidetmp.Dir(t)
			ws, elsewhere := filepath.Join(dir, "ws"), filepath.Join(dir, "s")
			if err := errors.Join(os.Mkdir(ws, 0o755), os.Mkdir(elsewhere, 0o755)); err != nil {
				t.Fatal(err)
			}
			names := boundIn(t, elsewhere)
			boundIn(t, ws)
			const script = `import os, socket, sys
print("ran")
for name in sys.argv[1:]:
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(name)
        print("reached", name)
    except OSError:
        pass`
			args := []string{"-c", script}
			for _, name := range names {
				args = append(args, filepath.Join(elsewhere, name), filepath.Join(ws, name))
			}
			if out, err := exec.CommandContext(t.Context(), "python3", args...).Output(); err != nil || strings.Count(string(out), "reached") != 2*len(names) {
				t.Fatalf("without a sandbox: got %s, %v, want all of them reached", out, err)
			}
			for _, name := range []string{"command", "check", "server"} {
				p := profile(t, name)
				p.Home, p.Write = filepath.Join(dir, "home"), open(t, ws)
				if name == "server" {
					p.Read = open(t, elsewhere)
				}
				got, err := b.start(t, p, ws, nil, append([]string{"python3"}, args...)...)
				if err != nil || got.code != 0 || got.out != "ran\n" {
					t.Errorf("profile %s: got %q, code %d, %v; want none reached", name, got.out, got.code, err)
				}
			}
		})
	}
}

// A program that makes very many sockets takes no sandbox from others: their folders are hidden
// as wholes, and where that cannot be, no weaker back end takes the place of a good one.
func TestManySockets(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			dir := besidetmp.Dir(t)
			ws, many, spread := filepath.Join(dir, "ws"), filepath.Join(dir, "many"), filepath.Join(dir, "spread")
			if err := errors.Join(os.Mkdir(ws, 0o755), os.Mkdir(many, 0o755)); err != nil {
				t.Fatal(err)
			}
			for i := range maxSockets/2 + 100 {
				in := fmt.Sprintf("%s/%d", spread, i)
				if err := os.MkdirAll(in, 0o755); err != nil {
					t.Fatal(err)
				}
				listensAt(t, in+"/s")
				listensAt(t, fmt.Sprintf("%s/%d", many, i))
			}
			listensAt(t, ws+"/one")
			p := profile(t, "command")
			p.Home, p.Write = filepath.Join(dir, "home"), open(t, ws)
			got, err := b.start(t, p, ws, nil, "sh", "-c", `echo ran; ls -A ../many ../spread; for s in one ../many/3 ../spread/3/s; do test -S $s && echo sees $s; done; true`)
			if err != nil || got.code != 0 || !strings.HasPrefix(got.out, "ran\n") || strings.Contains(got.out, "sees") || strings.Count(got.out, "\n") > 8 {
				t.Errorf("got %.400q, code %d, %v; want it to run, without a socket", got.out, got.code, err)
			}
			for i := range maxSockets { // in a folder that the program needs
				listensAt(t, fmt.Sprintf("%s/%d", ws, i))
			}
			if _, err := b.start(t, p, ws, nil, "true"); err == nil || !strings.Contains(err.Error(), "1025 of them in "+ws) {
				t.Errorf("got %v, want it refused, and where they are", err)
			}
			if _, err := try(backend); err != nil {
				t.Errorf("try(%s) = %v, want it to work still", backend, err)
			}
		})
	}
}

func TestBoundTo(t *testing.T) {
	for line, want := range map[string]string{
		"Num       RefCount Protocol Flags    Type St Inode Path":             "",
		"00000000ab: 00000002 00000000 00010000 0001 01 21131 /run/a b.sock":  "/run/a b.sock",
		"00000000ab: 00000002 00000000 00010000 0001 01 21131 rel/s":          "rel/s",
		"00000000ab: 00000002 00000000 00010000 0001 01 21131 @/tmp/abstract": "",
		"00000000ab: 00000003 00000000 00000000 0002 01 21132":                "",
		"00000000ab: 00000002 00000000 00010000 0001 01 7 /one":               "/one",
		"rest of a name": "",
		"":               "",
	} {
		if got, ok := boundTo(line); ok != (want != "") || ok && got != want {
			t.Errorf("boundTo(%q) = %q, %v; want %q", line, got, ok, want)
		}
	}
}
