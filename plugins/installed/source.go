package installed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/yaya-ai/yaya/internal/agentpackage"
	"github.com/yaya-ai/yaya/plugins/fetch"
	"github.com/yaya-ai/yaya/plugins/remote"
)

// Package is a plugin that can be installed.
type Package struct {
	// Source is where it comes from: the absolute path of a folder or a .tar.gz, or what
	// [fetch.Parse] takes, with its exact version.
	Source      string
	Resolved    string // what the version of a fetched one is: a commit, or a digest
	Folder      string // with its files
	Digest      string
	Description remote.Description
	// Parts are those of a package for agents, which has no program; nil for every other plugin.
	Parts *agentpackage.Package
	// Changes says which files are not those that were installed, in words; of [Store.Present].
	Changes []string
	built   string       // the digest without the program that was built, which the user has agreed to
	remove  func() error // of temporary folders
}

// Close removes what was unpacked.
func (p *Package) Close() error {
	if p.remove == nil {
		return nil
	}
	return p.remove()
}

// Fetch fetches a package, or reads a folder or a .tar.gz, without running anything of it. Close
// the package.
func Fetch(ctx context.Context, client *fetch.Client, source string) (_ *Package, err error) {
	s, elsewhere, err := fetch.Parse(source)
	switch {
	case err != nil:
		return nil, err
	case !elsewhere:
		return Inspect(source)
	}
	got, err := client.Fetch(ctx, s)
	if err != nil {
		return nil, err
	}
	p := &Package{Source: got.Source.String(), Resolved: got.Resolved, Folder: got.Folder, remove: got.Close}
	if _, err := p.read(true, false); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Inspect reads a folder or a .tar.gz without running anything of it. Close the package.
func Inspect(source string) (_ *Package, err error) {
	abs, err := filepath.Abs(source)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", source, err)
	}
	info, err := os.Stat(abs)
	if err != nil {
		return nil, fmt.Errorf("plugin: %w", err)
	}
	p := &Package{Source: abs, Folder: abs}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	switch {
	case info.IsDir():
	case info.Mode().IsRegular() && (strings.HasSuffix(abs, ".tar.gz") || strings.HasSuffix(abs, ".tgz")):
		if err := p.unpack(); err != nil {
			return nil, fmt.Errorf("plugin %s: %w", abs, err)
		}
	default:
		return nil, fmt.Errorf("plugin %s: neither a folder nor a .tar.gz", abs)
	}
	if _, err := p.read(true, false); err != nil {
		return nil, err
	}
	return p, nil
}

// read reads the digest, and the description that is in it.
func (p *Package) read(skip, each bool) (contents, error) {
	c, err := readFolder(p.Folder, skip, each)
	if err != nil {
		return c, fmt.Errorf("plugin %s: %w", p.Source, err)
	}
	p.Digest = c.digest
	at := p.Folder
	if !p.Local() { // a temporary folder, which says nothing to anybody
		at = p.Source
	}
	if p.Description, p.Parts, err = c.describe(at); err != nil || p.Parts != nil {
		return c, err
	}
	if program := p.Description.Run[0]; skip && strings.Contains(program, "/") && leftOut(program) {
		return c, fmt.Errorf("plugin %s: run: %s is in a folder that an installation leaves out (%s)", p.Source, program, strings.Join(skipped, ", "))
	}
	return c, nil
}

// Local reports whether the package is a folder on this machine, which alone can be editable.
func (p *Package) Local() bool { return p.remove == nil }

// unpack unpacks an archive into a temporary folder. Files may lie in one folder.
func (p *Package) unpack() error {
	in, err := os.Open(p.Source) //nolint:forbidigo // the user names it
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	dir, err := os.MkdirTemp("", "yaya-plugin-")
	if err != nil {
		return err
	}
	p.Folder, p.remove = dir, func() error { return os.RemoveAll(dir) } //nolint:forbidigo // made here, with a name of its own
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if err := fetch.Untar(root, in); err != nil {
		return err
	}
	p.Folder, err = fetch.Top(dir, nil)
	return err
}
