package installed

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/yaya-ai/yaya/plugins/remote"
)

// Package is a plugin that can be installed.
type Package struct {
	Source      string // absolute: a folder, or a .tar.gz
	Folder      string // with its files
	Digest      string
	Description remote.Description
	remove      func() error // a temporary folder
}

// Close removes what was unpacked.
func (p *Package) Close() error {
	if p.remove == nil {
		return nil
	}
	return p.remove()
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
	if err := p.read(true); err != nil {
		return nil, err
	}
	return p, nil
}

// read reads the description and the digest.
func (p *Package) read(skip bool) (err error) {
	if p.Description, err = remote.ReadDescription(p.Folder); err != nil {
		return err
	}
	root, err := os.OpenRoot(p.Folder)
	if err != nil {
		return fmt.Errorf("plugin: %w", err)
	}
	defer func() { _ = root.Close() }()
	if p.Digest, err = Digest(root, skip); err != nil {
		return fmt.Errorf("plugin %s: %w", p.Source, err)
	}
	return nil
}

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
	if err := extract(root, in); err != nil {
		return err
	}
	if _, err := root.Lstat(remote.DescriptionFile); err == nil {
		return nil
	}
	top, err := os.ReadDir(dir)
	if err == nil && len(top) == 1 && top[0].IsDir() {
		p.Folder = filepath.Join(dir, top[0].Name())
	}
	return err
}

// extract writes the files of an archive.
func extract(to *os.Root, in io.Reader) error {
	zipped, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	files := tar.NewReader(io.LimitReader(zipped, maxBytes+maxEntries*1024))
	var total int64
	for n := 0; ; n++ {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := path.Clean(h.Name)
		if !filepath.IsLocal(name) || n > maxEntries {
			return fmt.Errorf("%.200q: a name that leads outside, or more than %d entries", h.Name, maxEntries)
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = to.MkdirAll(name, 0o700)
		case tar.TypeReg:
			if total += h.Size; total > maxBytes {
				return fmt.Errorf("more than %d MiB", maxBytes>>20)
			}
			err = put(to, name, files, h.Mode&0o111 != 0, h.Size)
		case tar.TypeXGlobalHeader:
		default:
			err = fmt.Errorf("%.200q is neither a file nor a folder: a plugin has no links", h.Name)
		}
		if err != nil {
			return err
		}
	}
}
