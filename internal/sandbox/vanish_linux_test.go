package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Sockets that come and go while a sandbox starts do not break the start.
func TestSocketsVanish(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			p := newPlace(t)
			stop, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				for {
					select {
					case <-stop:
						return
					default:
					}
					var all []net.Listener
					for i := range 5 {
						if l, err := net.Listen("unix", fmt.Sprintf("%s/v%d", p.dir, i)); err == nil {
							all = append(all, l)
						}
					}
					for _, l := range all {
						_ = l.Close()
					}
				}
			}()
			for range 20 {
				if got, err := b.start(t, profile(t, "check"), "/", nil, "true"); err != nil || got.code != 0 || got.out != "" {
					t.Errorf("code %d, output %q, error %v; want a start, and no word of one that failed", got.code, got.out, err)
				}
			}
			close(stop)
			<-done
		})
	}
}

// bubblewrap that fails many times because of a socket that comes and goes is started again, with the
// list of that moment; one that fails for another reason is not for as long.
func TestBwrapFailsAtASocket(t *testing.T) {
	b := needs(t, Bwrap)
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	socket := p.dir + "/comes-and-goes"
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []struct {
		name, says string
		want       bool
		least      int
	}{
		{"at the socket", "bwrap: Can't create file at " + socket + ": No such file or directory", true, 61},
		{"elsewhere", "bwrap: Can't mount proc on /newroot/proc: Operation not permitted", false, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			count := filepath.Join(dir, "count")
			script := fmt.Sprintf("#!/bin/sh\nread n < %[1]s\necho $((n+1)) > %[1]s\nif [ $n -lt 60 ]; then echo %[2]q >&2; exit 1; fi\nexec %[3]s \"$@\"\n", count, c.says, bwrap)
			if err := errors.Join(os.WriteFile(count, []byte("0\n"), 0o600), os.WriteFile(filepath.Join(dir, "bwrap"), []byte(script), 0o700)); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			got, err := b.start(t, profile(t, "check"), "/", nil, "true")
			if works := err == nil && got.code == 0 && got.out == ""; works != c.want {
				t.Errorf("code %d, output %q, error %v; want a start that works: %t", got.code, got.out, err, c.want)
			}
			data, err := os.ReadFile(count)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := strconv.Atoi(strings.TrimSpace(string(data))); err != nil || n != c.least {
				t.Errorf("bwrap was started %q times, %v, want %d", data, err, c.least)
			}
		})
	}
}

// Folders of other users with sockets that root cannot enter in bubblewrap's namespace are
// hidden as a whole. They come and go like the sockets, and do not break the start either.
func TestFoldersOfSocketsVanish(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("an ordinary user does not see such a socket")
	}
	for _, backend := range []string{Namespaces, Bwrap} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			p := newPlace(t)
			stop, done := make(chan struct{}), make(chan error, 1)
			go func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						done <- nil
						return
					default:
					}
					var err error
					var ends []func() error
					for i := range 5 {
						dir := fmt.Sprintf("%s/theirs%d", p.dir, 5*n+i)
						err = errors.Join(err, os.Mkdir(dir, 0o700), os.Chown(dir, 1234, 1234))
						l, listenErr := net.Listen("unix", dir+"/s")
						if err = errors.Join(err, listenErr); err == nil {
							ends = append(ends, func() error { return errors.Join(l.Close(), os.Remove(dir)) })
						}
					}
					for _, end := range ends {
						err = errors.Join(err, end())
					}
					if err != nil {
						done <- err
						return
					}
				}
			}()
			for range 20 {
				if got, err := b.start(t, profile(t, "check"), "/", nil, "true"); err != nil || got.code != 0 || got.out != "" {
					t.Errorf("code %d, output %q, error %v; want a start, and no word of one that failed", got.code, got.out, err)
				}
			}
			close(stop)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		})
	}
}
