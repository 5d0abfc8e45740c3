//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// module is the module's path. All addresses of releases derive from it.
const module = "github.com/yaya-ai/yaya"

// home is where the project is; a release's files are below home/releases/download/vVERSION.
const home = "https://" + module

// builder makes a release.
type builder struct {
	commit        commit
	source        string // folder of the sources
	out           string // folder of the release's files
	nfpm          string
	tags, ldflags string
	targets       []target
	cache         string // GOCACHE; the usual one if empty
}

// linked are the flags of the linker. The Makefile has the same.
func (b *builder) linked() string {
	set := func(name, value string) string { return fmt.Sprintf(" -X %s/daemon.%s=%s", module, name, value) }
	return b.ldflags + set("described", b.commit.described) + set("commit", b.commit.digest) + set("committed", b.commit.at.Format(time.RFC3339))
}

// build builds yaya for a target, and returns the program's path.
func (b *builder) build(ctx context.Context, t target) (string, error) {
	bin := filepath.Join(b.out, "programs", t.os+"_"+t.arch, t.program())
	fmt.Printf("%s …\n", t)
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-tags", b.tags, "-ldflags", b.linked(), "-o", bin, "./cmd/yaya") //nolint:gosec // flags of the Makefile
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.source, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "GOOS="+t.os, "GOARCH="+t.arch, "CGO_ENABLED=0")
	if b.cache != "" {
		cmd.Env = append(cmd.Env, "GOCACHE="+b.cache)
	}
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build for %s: %w", t, err)
	}
	return bin, nil
}

// make makes all files of the release, in an empty folder.
func (b *builder) make(ctx context.Context) error {
	if err := os.RemoveAll(b.out); err != nil { //nolint:forbidigo // a folder of the Makefile's
		return err
	}
	here := target{runtime.GOOS, runtime.GOARCH}
	native, err := b.build(ctx, here)
	if err != nil {
		return err
	}
	if err := b.describe(ctx, native); err != nil {
		return err
	}
	x, err := readExtras(ctx, native, b.source)
	if err != nil {
		return err
	}
	for _, t := range b.targets {
		bin := native
		if t != here {
			if bin, err = b.build(ctx, t); err != nil {
				return err
			}
		}
		if err := b.pack(ctx, t, bin, x); err != nil {
			return err
		}
	}
	if err := b.copyInstaller(); err != nil {
		return err
	}
	if err := b.formula(); err != nil {
		return err
	}
	if err := b.forWindows(); err != nil {
		return err
	}
	if err := b.sums(); err != nil {
		return err
	}
	return b.sign(ctx)
}

// describe asks the program for its version.
func (b *builder) describe(ctx context.Context, bin string) error {
	said, err := output(ctx, ".", bin, "version")
	if err != nil {
		return err
	}
	words := strings.Fields(said)
	if len(words) < 2 || words[0] != "yaya" || !strings.Contains(said, b.commit.digest) {
		return fmt.Errorf("%s version says %q, want the commit %s", bin, said, b.commit.digest)
	}
	b.commit.version = words[1]
	return nil
}

// name is the name of a file of the release.
func (b *builder) name(t target, ending string) string {
	return fmt.Sprintf("yaya_%s_%s_%s.%s", b.commit.version, t.os, t.arch, ending)
}

// pack writes all files for one target.
func (b *builder) pack(ctx context.Context, t target, bin string, x extras) error {
	program, err := os.ReadFile(bin) //nolint:forbidigo,gosec // built here
	if err != nil {
		return err
	}
	files := append([]entry{{t.program(), 0o755, program}}, x.entries(t)...)
	var data []byte
	if t.os == "windows" {
		data, err = zipped(files, b.commit.at)
	} else {
		data, err = tarGz(strings.TrimSuffix(b.name(t, "tar.gz"), ".tar.gz"), files, b.commit.at)
	}
	if err != nil {
		return err
	}
	if err := b.write(b.name(t, t.archive()), data); err != nil {
		return err
	}
	bom, err := sbom(bin, b.commit)
	if err != nil {
		return err
	}
	if err := b.write(b.name(t, "cdx.json"), bom); err != nil {
		return err
	}
	if t.os != "linux" {
		return nil
	}
	return b.packages(ctx, t, bin, x)
}

func (b *builder) write(name string, data []byte) error {
	return os.WriteFile(filepath.Join(b.out, name), data, 0o644) //nolint:forbidigo,gosec // a release is for everybody
}

func (b *builder) copyInstaller() error {
	data, err := os.ReadFile(filepath.Join(b.source, "deploy", "install.sh")) //nolint:forbidigo,gosec // a file of the sources
	if err != nil {
		return err
	}
	return b.write("install.sh", data)
}
