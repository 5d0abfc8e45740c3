//go:build unix

package main

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
)

// check installs the packages for this machine in empty roots, starts the service's program there,
// and removes them again.
func (b *builder) check(ctx context.Context) error {
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		return errors.New("packages are installed in roots of their own, which needs root on Linux")
	}
	box, err := staticBusybox()
	if err != nil {
		return err
	}
	checked := 0
	for _, m := range []manager{dpkg{}, rpm{}, apk{}} {
		files, err := filepath.Glob(filepath.Join(b.out, "yaya_*_linux_"+runtime.GOARCH+"."+m.kind()))
		if err != nil {
			return err
		}
		if len(files) != 1 {
			return fmt.Errorf("%s has %d packages .%s for this machine, want one (make release-snapshot writes them)", b.out, len(files), m.kind())
		}
		if program := m.needs(); program != "" {
			if _, err := exec.LookPath(program); err != nil {
				return fmt.Errorf("the package .%s is not checked without %s: install it", m.kind(), program)
			}
		}
		if err := checkPackage(ctx, m, box, files[0]); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(files[0]), err)
		}
		checked++
	}
	fmt.Printf("%d packages checked\n", checked)
	return nil
}

// staticBusybox is the shell of the roots, which have no libraries.
func staticBusybox() (string, error) {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return "", errors.New("the roots need a static busybox for the scripts of packages: install busybox-static")
	}
	f, err := elf.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return "", fmt.Errorf("%s is linked dynamically: install busybox-static", path)
	}
	return path, nil
}

// checkPackage installs a package twice, as an upgrade does, serves with it, and removes it.
func checkPackage(ctx context.Context, m manager, busybox, file string) (err error) {
	r, err := openRoot(ctx, busybox)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.remove()) }()
	if err := m.prepare(ctx, r); err != nil {
		return err
	}
	if err := m.install(ctx, r, file); err != nil {
		return fmt.Errorf("install: %w", err)
	}
	const setting = "\n[log]\nlevel = \"info\"\n"
	if err := r.appendTo("etc/yaya/config.toml", setting); err != nil {
		return err
	}
	if err := m.install(ctx, r, file); err != nil {
		return fmt.Errorf("install again: %w", err)
	}
	if !r.contains("etc/yaya/config.toml", setting) {
		return errors.New("the second installation lost a setting in /etc/yaya/config.toml")
	}
	for _, name := range []string{"usr/bin/yaya", "usr/share/man/man1/yaya.1.gz", "usr/share/doc/yaya/copyright", "usr/share/bash-completion/completions/yaya", "usr/share/fish/vendor_completions.d/yaya.fish"} {
		if !r.has(name) {
			return fmt.Errorf("/%s was not installed", name)
		}
	}
	if err := r.serve(ctx, m.unit()); err != nil {
		return err
	}
	if err := m.uninstall(ctx, r); err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	for _, name := range []string{"usr/bin/yaya", "usr/lib/systemd/system/yaya.service", "usr/share/man/man1/yaya.1.gz"} {
		if r.has(name) {
			return fmt.Errorf("/%s is still there after the removal", name)
		}
	}
	if !r.has("var/lib/yaya/data/VERSION") {
		return errors.New("the removal took the data in /var/lib/yaya away")
	}
	fmt.Printf("%s: installed twice, answers /health as the user yaya, removed; its data stays\n", filepath.Base(file))
	return nil
}
