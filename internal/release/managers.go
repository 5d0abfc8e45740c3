//go:build unix

package main

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// manager is a package manager, in a root.
type manager interface {
	kind() string
	needs() string // a program of this machine; "" for none
	unit() bool
	prepare(ctx context.Context, r *root) error
	install(ctx context.Context, r *root, file string) error
	uninstall(ctx context.Context, r *root) error
}

type dpkg struct{}

func (dpkg) kind() string  { return "deb" }
func (dpkg) needs() string { return "dpkg" }
func (dpkg) unit() bool    { return true }

func (dpkg) prepare(_ context.Context, r *root) error {
	for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "var/log"} {
		if err := r.at.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return r.at.WriteFile("var/lib/dpkg/status", nil, 0o644)
}

func (dpkg) install(ctx context.Context, r *root, file string) error {
	_, err := output(ctx, r.dir, "dpkg", "--root="+r.dir, "--force-confold", "--install", file)
	return err
}

// uninstall removes the package, sees that its settings stay, and purges it. Purge leaves the key of
// the secrets, which are in /var/lib/yaya.
func (dpkg) uninstall(ctx context.Context, r *root) error {
	if _, err := output(ctx, r.dir, "dpkg", "--root="+r.dir, "--remove", "yaya"); err != nil {
		return err
	}
	if !r.has("etc/yaya/config.toml") {
		return errors.New("dpkg --remove took /etc/yaya/config.toml away, want that of purge alone")
	}
	const key = "etc/yaya/secrets.key"
	if err := r.at.WriteFile(key, []byte("a key"), 0o600); err != nil {
		return err
	}
	if _, err := output(ctx, r.dir, "dpkg", "--root="+r.dir, "--purge", "yaya"); err != nil {
		return err
	}
	if !r.has(key) || r.has("etc/yaya/config.toml") {
		return errors.New("dpkg --purge took the key of the secrets away, or left config.toml")
	}
	return nil
}

type rpm struct{}

func (rpm) kind() string  { return "rpm" }
func (rpm) needs() string { return "rpm" }
func (rpm) unit() bool    { return true }

func (rpm) prepare(ctx context.Context, r *root) error {
	_, err := output(ctx, r.dir, "rpm", "--root", r.dir, "--initdb")
	return err
}

// install upgrades: the root's shell belongs to no package, so dependencies are not looked at.
func (rpm) install(ctx context.Context, r *root, file string) error {
	_, err := output(ctx, r.dir, "rpm", "--root", r.dir, "--nodeps", "--replacepkgs", "-U", file)
	return err
}

func (rpm) uninstall(ctx context.Context, r *root) error {
	_, err := output(ctx, r.dir, "rpm", "--root", r.dir, "--nodeps", "-e", "yaya")
	return err
}

// apk unpacks packages itself, and runs their scripts as apk does: its package manager is not among
// the packages of other systems. Three streams of gzip follow each other; together they are one tar.
type apk struct{}

func (apk) kind() string                         { return "apk" }
func (apk) needs() string                        { return "" }
func (apk) unit() bool                           { return false }
func (apk) prepare(context.Context, *root) error { return nil }

func (a apk) install(ctx context.Context, r *root, file string) (err error) {
	before, after := "pre-install", "post-install"
	if r.has("usr/bin/yaya") {
		before, after = "pre-upgrade", "post-upgrade"
	}
	if err := a.unpack(r, file, func(name string) bool { return strings.HasPrefix(name, ".") }); err != nil {
		return err
	}
	if err := a.script(ctx, r, before); err != nil {
		return err
	}
	settings, had := r.read("etc/yaya/config.toml")
	if err := a.unpack(r, file, func(name string) bool { return !strings.HasPrefix(name, ".") }); err != nil {
		return err
	}
	if had { // as apk protects files below /etc
		if err := r.at.WriteFile("etc/yaya/config.toml", settings, 0o644); err != nil {
			return err
		}
	}
	return a.script(ctx, r, after)
}

func (a apk) uninstall(ctx context.Context, r *root) error {
	if err := a.script(ctx, r, "pre-deinstall"); err != nil {
		return err
	}
	for _, name := range []string{"usr/bin/yaya", "usr/share/man/man1/yaya.1.gz"} {
		if err := r.at.Remove(name); err != nil {
			return err
		}
	}
	return a.script(ctx, r, "post-deinstall")
}

func (apk) script(ctx context.Context, r *root, name string) error {
	return r.run(ctx, "/bin/sh", "/."+name, "1.0.0")
}

// unpack writes the wanted files of a package into a root.
func (apk) unpack(r *root, file string, want func(name string) bool) error {
	f, err := os.Open(file) //nolint:forbidigo,gosec // made here
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		return err
	}
	t := tar.NewReader(z)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
		if h.Typeflag != tar.TypeReg || !want(h.Name) {
			continue
		}
		if err := r.at.MkdirAll(filepath.Dir(h.Name), 0o755); err != nil {
			return err
		}
		data, err := io.ReadAll(io.LimitReader(t, h.Size)) //nolint:forbidigo // bounded
		if err != nil {
			return err
		}
		if err := r.at.WriteFile(h.Name, data, h.FileInfo().Mode().Perm()); err != nil {
			return err
		}
	}
}
