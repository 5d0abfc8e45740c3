package sandbox

import (
	"fmt"
	"net"
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
				if got, err := b.start(t, profile(t, "check"), "/", nil, "true"); err != nil || got.code != 0 {
					t.Errorf("code %d, output %q, error %v", got.code, got.out, err)
				}
			}
			close(stop)
			<-done
		})
	}
}
