package installed

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/yaya-ai/yaya/internal/agentpackage"
	"github.com/yaya-ai/yaya/plugins/fetch"
	"github.com/yaya-ai/yaya/plugins/remote"
)

// skipped are folders that are not part of a plugin: the history of its source, and caches
// that an interpreter would run in the place of the source.
var skipped = []string{".git", "__pycache__"}

// file is an entry of a folder.
type file struct {
	name string // slash-separated, relative
	mode fs.FileMode
	size int64
}

// list returns the entries of a folder, sorted by name, without [skipped] if skip is set.
func list(root *os.Root, skip bool) ([]file, error) {
	var out []file
	var total int64
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name == "." {
			return nil
		}
		if d.IsDir() && skip && slices.Contains(skipped, d.Name()) {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() && !info.IsDir() {
			return fmt.Errorf("%s is neither a file nor a folder: a plugin has no links", name)
		}
		f := file{name: name, mode: info.Mode()}
		if info.Mode().IsRegular() {
			f.size = info.Size()
		}
		total += f.size
		if out = append(out, f); len(out) > fetch.MaxEntries || total > fetch.MaxBytes {
			return fmt.Errorf("more than %d files and folders, or %d MiB", fetch.MaxEntries, fetch.MaxBytes>>20)
		}
		return nil
	})
	slices.SortFunc(out, func(a, b file) int { return slices.Compare([]byte(a.name), []byte(b.name)) })
	return out, err
}

// Bounds of what describes the parts of a package for agents.
const (
	maxPart  = 1 << 20 // of each file
	maxParts = 16 << 20
)

// contents holds the digest of a folder, and the files that describe what it is, read in one pass:
// the description is made of bytes that are in the digest. Another plugin.toml that is renamed into
// the folder meanwhile gives another digest.
type contents struct {
	digest      string
	description *bytes.Buffer // the plugin.toml; nil without one
	names       []string      // without one: all files, and those that describe parts of a package
	parts       map[string]*bytes.Buffer
	files       *files // nil unless they are wanted one by one
}

// read reads the files of a folder. Its digest is that of their names, contents, and whether they
// can be executed. skip leaves out what an installation leaves out; each notes the files one by one.
func read(root *os.Root, skip, each bool) (c contents, err error) {
	all, err := list(root, skip)
	if err != nil {
		return c, err
	}
	sum := sha256.New()
	if each {
		c.files = &files{Each: map[string]string{}}
	}
	isPlugin := slices.ContainsFunc(all, func(f file) bool { return f.name == remote.DescriptionFile })
	var parts int64
	for _, f := range all {
		if f.mode.IsDir() {
			continue
		}
		var to io.Writer = sum
		switch {
		case f.name == remote.DescriptionFile:
			if f.size > remote.MaxDescription {
				return c, fmt.Errorf("%s: not a file of at most %d KiB", f.name, remote.MaxDescription>>10)
			}
			c.description = new(bytes.Buffer)
			to = io.MultiWriter(sum, c.description)
		case isPlugin:
		default:
			c.names = append(c.names, f.name)
			if !agentpackage.Wanted(f.name) {
				break
			}
			if f.size > maxPart || parts+f.size > maxParts {
				break // whoever needs it says that it is not there
			}
			parts += f.size
			part := new(bytes.Buffer)
			if c.parts == nil {
				c.parts = map[string]*bytes.Buffer{}
			}
			c.parts[f.name] = part
			to = io.MultiWriter(sum, part)
		}
		if !each {
			if err := add(sum, to, root, f); err != nil {
				return c, err
			}
			continue
		}
		own := sha256.New()
		if err := add(sum, io.MultiWriter(to, own), root, f); err != nil {
			return c, err
		}
		c.files.note(f.name, f.mode.Perm()&0o111 != 0, own.Sum(nil))
	}
	c.digest = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	if each {
		c.files.Digest = c.digest
	}
	return c, nil
}

// readFolder is read for the folder at a path.
func readFolder(folder string, skip, each bool) (contents, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return contents{}, err
	}
	defer func() { _ = root.Close() }()
	return read(root, skip, each)
}

// describe parses the description that was read; from is the folder or the source, for errors. The
// parts are nil for a plugin that is a program.
func (c contents) describe(from string) (remote.Description, *agentpackage.Package, error) {
	if c.description == nil {
		return c.describeParts(from)
	}
	d, err := remote.ParseDescription(c.description.Bytes())
	if err != nil {
		return d, nil, fmt.Errorf("%s: %s: %w", from, remote.DescriptionFile, err)
	}
	return d, nil, nil
}

// describeParts describes a package for agents, as a plugin that has no program.
func (c contents) describeParts(from string) (d remote.Description, _ *agentpackage.Package, err error) {
	if !agentpackage.Is(func(name string) bool { return slices.Contains(c.names, name) }) {
		return d, nil, fmt.Errorf("%s is not a plugin: it has no file %s, and is not a package for agents either (%s)", from, remote.DescriptionFile, strings.Join(agentpackage.Manifests, ", "))
	}
	files := map[string][]byte{}
	for name, part := range c.parts {
		files[name] = part.Bytes()
	}
	p, err := agentpackage.Read(c.names, files)
	if err != nil {
		return d, nil, fmt.Errorf("%s: %w", from, err)
	}
	return remote.Description{Name: p.Name, Version: p.Version, Category: "skill", Description: p.Description}, &p, nil
}

// leftOut reports whether an installation leaves out a file.
func leftOut(name string) bool {
	return slices.ContainsFunc(strings.Split(filepath.ToSlash(filepath.Clean(name)), "/"), func(part string) bool { return slices.Contains(skipped, part) })
}

// opening is called with the name of each file that is about to be read. It is for tests, which
// change files then.
var opening = func(string) {}

// add adds a file to a digest, and its contents to a writer.
func add(sum hash.Hash, to io.Writer, root *os.Root, f file) error {
	fmt.Fprintf(sum, "%q %v %d\n", f.name, f.mode.Perm()&0o111 != 0, f.size)
	opening(f.name)
	in, err := open(root, f.name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	n, err := io.Copy(to, io.LimitReader(in, f.size+1))
	if err == nil && n != f.size {
		err = fmt.Errorf("%s changes while it is read", f.name)
	}
	return err
}

// open opens a regular file.
func open(root *os.Root, name string) (*os.File, error) {
	in, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is not a file", name), err, in.Close())
	}
	return in, nil
}

// copyTree copies the files of a folder into an empty one.
func copyTree(from, to *os.Root) error {
	files, err := list(from, true)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.mode.IsDir() {
			if err := to.MkdirAll(f.name, 0o700); err != nil {
				return err
			}
			continue
		}
		in, err := open(from, f.name)
		if err != nil {
			return err
		}
		err = put(to, in, f)
		if err := errors.Join(err, in.Close()); err != nil {
			return err
		}
	}
	return nil
}

// put writes a file of the copy. No process starts while it writes a program: it would have the
// file open for a moment, and who runs it would be told "text file busy".
func put(to *os.Root, in *os.File, f file) error {
	executable := f.mode.Perm()&0o111 != 0
	if executable {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
	}
	return fetch.Put(to, f.name, in, executable, f.size)
}
