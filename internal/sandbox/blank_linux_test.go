package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Yarn, Maven and others end at settings that they cannot read: where these may hold tokens, a
// command finds them without any setting, and cannot change them.
func TestBlankSettings(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			p := newPlace(t)
			for name := range blanks {
				at := filepath.Join(p.home, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte("canary"), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			for name, content := range blanks {
				pol := p.policy(t, "command")
				pol.Cache = p.dir + "/cache-command"
				got, err := b.start(t, pol, p.ws, nil, "sh", "-c", `cat "$1" || echo unreadable; echo x 2>/dev/null >>"$1"; true`, "sh", filepath.Join(p.home, name))
				data, rerr := os.ReadFile(filepath.Join(p.home, name))
				if err != nil || got.out != content {
					t.Errorf("%s: got %q, %v; want %q", name, got.out, err, content)
				}
				if rerr != nil || string(data) != "canary" {
					t.Errorf("%s outside: got %q, %v; want it unchanged", name, data, rerr)
				}
			}
		})
	}
}
