package installed

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/yaya-ai/yaya/internal/agentpackage"
	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/errnos"
	"github.com/yaya-ai/yaya/plugins/remote"
)

const (
	lockFile = "plugin.lock"
	maxLock  = 64 << 10
)

// Entry is an installed plugin.
type Entry struct {
	Name     string `json:"name"`
	Version  string `json:"version"` // when it was installed
	Source   string `json:"source"`
	Resolved string `json:"resolved,omitempty"` // what the version of a fetched one was
	Digest   string `json:"digest,omitempty"`   // of its files; "" for an editable one
	// Agreed is the digest that the user has agreed to, if yaya has added the program that it
	// built; else "".
	Agreed    string    `json:"agreed,omitempty"`
	Editable  bool      `json:"editable,omitempty"`
	Installed time.Time `json:"installed"`

	folder string
}

// Folder is the folder with the files, absolute.
func (e Entry) Folder() string { return e.folder }

// Store keeps the installed plugins of a data folder. Its methods are safe for concurrent use
// by processes that hold the lock of the data folder.
type Store struct{ data *os.Root }

// NewStore returns the store of a data folder.
func NewStore(data *os.Root) *Store { return &Store{data} }

func (s *Store) at(name ...string) string { return path.Join(append([]string{"plugins"}, name...)...) }

// List returns the installed plugins by name, those with copied files before the editable
// ones, and what cannot be read.
func (s *Store) List() ([]Entry, error) {
	names, err := fs.ReadDir(s.data.FS(), s.at())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("installed plugins: %w", err)
	}
	var out []Entry
	var errs []error
	for _, d := range names {
		e, err := s.Get(d.Name())
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if s.described(d.Name()) {
				at := filepath.Join(s.data.Name(), "plugins", d.Name())
				errs = append(errs, fmt.Errorf("plugin %s: somebody has put it there, and nobody has agreed to it: move it elsewhere, then: yaya plugin install FOLDER (it is in %s)", d.Name(), at))
			}
		case err != nil:
			errs = append(errs, err)
		default:
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b Entry) int {
		switch {
		case a.Editable == b.Editable:
			return 0
		case a.Editable:
			return 1
		}
		return -1
	})
	return out, errors.Join(errs...)
}

// described reports whether a folder would be a plugin.
func (s *Store) described(name string) bool {
	has := func(file string) bool {
		_, err := s.data.Lstat(s.at(name, file))
		return err == nil
	}
	return has(remote.DescriptionFile) || agentpackage.Is(has)
}

// Get returns an installed plugin; an error that is [fs.ErrNotExist] without one.
func (s *Store) Get(name string) (Entry, error) {
	if !filepath.IsLocal(name) || path.Base(name) != name {
		return Entry{}, fmt.Errorf("plugin %q: %w", name, fs.ErrNotExist)
	}
	info, err := s.data.Lstat(s.at(name, lockFile))
	if err != nil {
		return Entry{}, fmt.Errorf("plugin %s: %w", name, err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxLock {
		return Entry{}, fmt.Errorf("plugin %s: its %s cannot be read; install it again", name, lockFile)
	}
	raw, err := s.data.ReadFile(s.at(name, lockFile))
	if err != nil {
		return Entry{}, fmt.Errorf("plugin %s: %w", name, err)
	}
	var e Entry
	if err := json.Unmarshal(raw, &e); err != nil || e.Name != name {
		return Entry{}, fmt.Errorf("plugin %s: its %s is damaged; install it again: yaya plugin install FOLDER", name, lockFile)
	}
	e.folder = e.Source
	if !e.Editable {
		if !filepath.IsLocal(e.Version) || path.Base(e.Version) != e.Version || e.Digest == "" {
			return Entry{}, fmt.Errorf("plugin %s: its %s is damaged; install it again: yaya plugin install FOLDER", name, lockFile)
		}
		e.folder = filepath.Join(s.data.Name(), "plugins", name, e.Version)
	}
	return e, nil
}

// ChangedError reports that the files of a plugin are not those that were installed.
type ChangedError struct{ Name, Folder string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("its files have changed since it was installed: look at them (yaya plugin accept %s shows which, and what they may do, and asks): they are in %s", e.Name, e.Folder)
}

// Verify returns an error if the files are not those that were installed. An editable plugin
// may change.
func (e Entry) Verify() error {
	if e.Editable {
		return nil
	}
	_, err := e.verified(false)
	return err
}

func (e Entry) verified(each bool) (contents, error) {
	c, err := readFolder(e.folder, false, each)
	switch {
	case err != nil:
		return c, fmt.Errorf("plugin %s: %s: %w", e.Name, e.folder, err)
	case c.digest != e.Digest:
		return c, &ChangedError{e.Name, e.folder}
	}
	return c, nil
}

// Describe returns the plugin's description as the user has agreed to it, with its parts if it is a
// package for agents, and the errors of [Entry.Verify]. That of an editable one is the present one.
func (e Entry) Describe() (remote.Description, *agentpackage.Package, error) {
	if e.Editable {
		return e.Present()
	}
	c, err := e.verified(false)
	if err != nil {
		return remote.Description{}, nil, err
	}
	return c.describe(e.folder)
}

// Present describes the present files, whoever has agreed to them.
func (e Entry) Present() (remote.Description, *agentpackage.Package, error) {
	if _, err := os.Lstat(filepath.Join(e.folder, remote.DescriptionFile)); err == nil { // the rest need not be read
		d, err := remote.ReadDescription(e.folder)
		return d, nil, err
	}
	c, err := readFolder(e.folder, true, false)
	if err != nil {
		return remote.Description{}, nil, fmt.Errorf("plugin %s: %s: %w", e.Name, e.folder, err)
	}
	return c.describe(e.folder)
}

// Install keeps a package whose digest the user has agreed to, in the place of the plugin of
// its name, if there is one. An editable one stays where it is.
func (s *Store) Install(p *Package, editable bool, digest string) (Entry, error) {
	e := Entry{Name: p.Description.Name, Version: p.Description.Version, Source: p.Source, Resolved: p.Resolved, Agreed: p.built, Editable: editable, Installed: time.Now().UTC(), folder: p.Folder}
	if digest != cmp.Or(p.built, p.Digest) {
		return e, fmt.Errorf("the files of %s have changed since they were shown: their digest is %s, and %s was agreed to", p.Source, cmp.Or(p.built, p.Digest), digest)
	}
	if editable && !p.Local() {
		return e, fmt.Errorf("%s is not a folder on this machine: no other one can be editable", p.Source)
	}
	if err := s.data.MkdirAll(s.at(e.Name), 0o700); err != nil {
		return e, fmt.Errorf("install plugin %s: %w", e.Name, err)
	}
	was, oldErr := s.Get(e.Name)
	if !editable {
		e.Digest = p.Digest
		if err := s.keep(p, e); err != nil {
			return e, fmt.Errorf("install plugin %s: %w", e.Name, err)
		}
		e.folder = filepath.Join(s.data.Name(), "plugins", e.Name, e.Version)
	}
	if err := s.write(e); err != nil {
		return e, err
	}
	if oldErr == nil && !was.Editable && (editable || was.Version != e.Version) {
		if err := s.data.RemoveAll(s.at(e.Name, was.Version)); err != nil {
			return e, fmt.Errorf("plugin %s is installed, and the files of its version %s cannot be removed: %w", e.Name, was.Version, err)
		}
	}
	return e, nil
}

// keep copies the files, whole or not at all.
func (s *Store) keep(p *Package, e Entry) error {
	fresh, final := s.at(e.Name, ".new"), s.at(e.Name, e.Version)
	if err := s.data.RemoveAll(fresh); err != nil {
		return err
	}
	if err := s.data.Mkdir(fresh, 0o700); err != nil {
		return err
	}
	defer func() { _ = s.data.RemoveAll(fresh) }() // after a failure; the next installation tries again
	from, err := os.OpenRoot(p.Folder)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := s.data.OpenRoot(fresh)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	if err := copyTree(from, to); err != nil {
		return err
	}
	got, err := read(to, false, true)
	if err != nil || got.digest != e.Digest {
		return errors.Join(fmt.Errorf("the files change while they are copied: their digest is %s, and %s was agreed to", got.digest, e.Digest), err)
	}
	if err := s.record(e.Name, got.files); err != nil {
		return err
	}
	if err := atomicfile.SyncTree(to); err != nil {
		return err
	}
	if err := s.data.RemoveAll(final); err != nil {
		return err
	}
	return s.data.Rename(fresh, final)
}

func (s *Store) write(e Entry) error {
	raw, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	root, err := s.data.OpenRoot(s.at(e.Name))
	if err != nil {
		return fmt.Errorf("install plugin %s: %w", e.Name, err)
	}
	defer func() { _ = root.Close() }()
	if _, err := atomicfile.Write(root, lockFile, append(raw, '\n')); err != nil {
		return fmt.Errorf("install plugin %s: %w", e.Name, err)
	}
	return nil
}

// Present returns the present files of an installed plugin, to be shown, and which have changed.
func (s *Store) Present(name string) (*Package, error) {
	e, err := s.Get(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no installed plugin %s", name)
	}
	if err != nil {
		return nil, err
	}
	p := &Package{Source: e.folder, Folder: e.folder}
	c, err := p.read(false, !e.Editable)
	if err == nil && !e.Editable {
		p.Changes, err = s.changes(e, c)
	}
	return p, err
}

// Accept takes the present files of an installed plugin, with the digest that was agreed to.
func (s *Store) Accept(name, digest string) (Entry, error) {
	e, err := s.Get(name)
	if err != nil {
		return e, err
	}
	e.Digest, e.Agreed = digest, ""
	var c contents
	var d remote.Description
	if e.Editable {
		d, _, err = e.Present()
	} else if c, err = e.verified(true); err == nil {
		d, _, err = c.describe(e.folder)
	}
	if err != nil {
		return e, err
	}
	if d.Name != e.Name || d.Version != e.Version {
		return e, fmt.Errorf("plugin %s: its files now say that it is %s %s: install it again", name, d.Name, d.Version)
	}
	if c.files != nil {
		if err := s.record(name, c.files); err != nil {
			return e, fmt.Errorf("plugin %s: %w", name, err)
		}
	}
	return e, s.write(e)
}

// Remove removes a plugin. Its state stays unless purge is set.
func (s *Store) Remove(name string, purge bool) error {
	_, err := s.Get(name)
	if err != nil {
		return err
	}
	if purge {
		err = s.data.RemoveAll(s.at(name))
	} else {
		err = s.removeOwn(name)
	}
	if err != nil {
		return fmt.Errorf("remove plugin %s: %w", name, err)
	}
	return nil
}

// removeOwn removes what yaya has put into the folder of a plugin, such as its files and the reason
// of a failed start: everything but its state, and the folder if there is none.
func (s *Store) removeOwn(name string) error {
	if err := s.data.Remove(s.at(name, lockFile)); err != nil { // first: without it the rest is not a plugin
		return err
	}
	rest, err := fs.ReadDir(s.data.FS(), s.at(name))
	if err != nil {
		return err
	}
	for _, d := range rest {
		if d.Name() == remote.StateFolder {
			continue
		}
		if err := s.data.RemoveAll(s.at(name, d.Name())); err != nil {
			return err
		}
	}
	for _, empty := range []string{s.at(name, remote.StateFolder), s.at(name)} {
		if err := s.data.Remove(empty); err != nil && !errors.Is(err, errnos.NotEmpty) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
