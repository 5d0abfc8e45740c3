package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A granted path exists under the name by which it was granted, even if that leads over
// links in folders which an empty root does not have.
func TestNamesOverLinks(t *testing.T) {
	if _, err := (&Box{Backend: Namespaces}).choose(Probe()); err != nil {
		t.Skip(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.MkdirAll(at("real/deep/bin"), 0o755), os.WriteFile(at("real/deep/f"), []byte("here\n"), 0o600),
		os.WriteFile(at("real/deep/bin/tool"), []byte("#!/bin/sh\ncat \"$1\"; echo x > \"$2\"\n"), 0o755),
		os.MkdirAll(at("w"), 0o755), os.Mkdir(at("secret"), 0o755), os.WriteFile(at("secret/f"), []byte("secret"), 0o600),
		os.Symlink("real", at("rel")), os.Symlink(at("rel/deep"), at("abs")), os.Symlink("../../w", at("real/deep/out")), os.Symlink("loop", at("loop")),
	); err != nil {
		t.Fatal(err)
	}
	p := profile(t, "server")
	p.Home = dir
	p.Read, p.Write = follow(t, at("abs")), follow(t, at("abs/out"))
	got, err := (&Box{Backend: Namespaces}).start(t, p, at("abs"), nil, at("abs/bin/tool"), at("abs/f"), at("abs/out/new"))
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(at("w/new")); got.out != "here\n" || got.code != 0 || err != nil || string(data) != "x\n" {
		t.Errorf("got %q, code %d, wrote %q, %v; want what the links lead to", got.out, got.code, data, err)
	}
	p = profile(t, "server")
	p.Home, p.Read = dir, follow(t, at("abs"))
	if got, err := (&Box{Backend: Namespaces}).start(t, p, "/", nil, "cat", at("secret/f")); err != nil || got.code == 0 {
		t.Errorf("what is not granted: got %q, code %d, %v; want it hidden", got.out, got.code, err)
	}
	if _, err := Open(at("loop")); err == nil {
		t.Error("a link to itself was opened")
	}
}
