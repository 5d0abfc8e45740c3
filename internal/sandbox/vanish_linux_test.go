package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
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
