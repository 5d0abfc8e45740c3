package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/internal/secrets"
)

// ownFiles are the files that a yaya runs by which may lie outside its folders.
type ownFiles struct {
	paths    Paths    // of the yaya; without a home folder it knows no other yayas
	named    []string // by flags: settings, servers, keys
	readable []string // by flags, and no secret: certificates
}

// OwnFiles are those of a yaya that was given these files of servers.
func (g *Flags) OwnFiles(p Paths, mcpConfig []string) ownFiles {
	named := slices.Clone(mcpConfig)
	if g.ConfigFile != "" {
		named = append(named, g.ConfigFile)
	}
	return ownFiles{paths: p, named: absPaths(named)}
}

// listening adds the files of a listener.
func (o ownFiles) listening(l *Listen) ownFiles {
	if l.Key != "" {
		o.named, o.readable = append(o.named, absPaths([]string{l.Key})...), absPaths([]string{l.Cert})
	}
	return o
}

// absPaths makes paths absolute that can be.
func absPaths(names []string) []string {
	for i, name := range names {
		if abs, err := filepath.Abs(name); err == nil {
			names[i] = abs
		}
	}
	return names
}

// Prepare makes the configuration folder, and refuses links in it that lead to a file
// which is not there: no sandbox hides what is not there, and whoever makes it configures
// yaya.
func (o ownFiles) Prepare(log zerolog.Logger) error {
	if o.paths.Config == "" {
		return nil
	}
	if err := os.MkdirAll(o.paths.Config, 0o700); err != nil { //nolint:forbidigo // the user names it
		log.Warn().Err(err).Msg("the configuration folder cannot be made: a server that is not bounded to what its entry names may do so")
	}
	for _, dir := range o.paths.usual() {
		if Missing(o.paths.Home) {
			break // nothing is made there by anybody
		}
		if err := os.MkdirAll(dir, 0o700); err != nil { //nolint:forbidigo // yaya's own, which a sandbox hides if it is there
			log.Warn().Err(err).Msg("a folder of yaya's that sandboxes hide cannot be made")
		}
	}
	for _, name := range []string{o.paths.Servers(), o.paths.settings(), filepath.Join(o.paths.Config, secrets.KeyFile)} {
		if to, err := os.Readlink(name); err == nil && Missing(name) {
			return fmt.Errorf("%s is a link to %s, which is not there, and which a program in a sandbox could make: create that file, or remove the link", name, to)
		}
	}
	return nil
}

// Now returns the files that sandboxes hide or protect: the present ones, and the
// folders that the links of the configuration folder lead into. In such a folder a program
// outside may put another file in the place of ours, as Git does: what protects the old one
// is gone then. A folder that holds nothing else is hidden.
func (o ownFiles) Now() (hidden, readable []string) {
	hidden, readable = o.files()
	for _, dir := range o.beside() {
		if holdsOnly(dir, hidden) {
			hidden = append(hidden, dir)
		} else {
			readable = append(readable, dir)
		}
	}
	return hidden, readable
}

// beside are the folders, outside the configuration folder, that its links lead into, except
// those in which programs must be able to write: the home folder, those above it, and those
// of temporary files.
func (o ownFiles) beside() (dirs []string) {
	for _, name := range o.links() {
		to, err := filepath.EvalSymlinks(name)
		if err != nil {
			continue
		}
		if dir := filepath.Dir(to); !o.within(dir) && !o.shared(dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// within reports whether a path without links lies in the configuration folder.
func (o ownFiles) within(name string) bool {
	config, err := filepath.EvalSymlinks(o.paths.Config)
	return err == nil && sandbox.Within([]string{config}, name)
}

// shared reports whether programs must be able to write in a folder.
func (o ownFiles) shared(dir string) bool {
	for _, name := range []string{o.paths.Home, os.TempDir(), "/tmp", "/var/tmp"} {
		if to, err := filepath.EvalSymlinks(name); err == nil && sandbox.Within([]string{dir}, to) {
			return true
		}
	}
	return dir == "/"
}

// holdsOnly reports whether a folder holds nothing but some files.
func holdsOnly(dir string, files []string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > len(files) {
		return false
	}
	ours := map[string]bool{}
	for _, name := range files {
		if to, err := filepath.EvalSymlinks(name); err == nil {
			ours[to] = true
		}
	}
	return !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !ours[filepath.Join(dir, e.Name())] })
}

// files are the files as they are. One of the configuration folder may be a link, as in
// repositories of dotfiles: where it leads counts like the file.
func (o ownFiles) files() (hidden, readable []string) {
	return slices.Concat(o.named, o.links()), slices.Clone(o.readable)
}

// links are the links of the configuration folder that lead to files.
func (o ownFiles) links() (names []string) {
	entries, err := os.ReadDir(o.paths.Config)
	if err != nil {
		return nil // it is not there, or this is a sandbox of yaya's, which hides it
	}
	for _, e := range entries {
		name := filepath.Join(o.paths.Config, e.Name())
		if e.Type()&os.ModeSymlink == 0 {
			continue
		}
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() { // yaya reads no folder there
			names = append(names, name)
		}
	}
	return names
}

// Elsewhere are the folders and files of other yayas of the user, those of one without
// flags among them: what sandboxes hide, and what they do not change.
func (o ownFiles) Elsewhere() (hidden, readable []string, err error) {
	listed, readable, err := o.paths.enlisted()
	if err != nil {
		return nil, nil, fmt.Errorf("the folders of other yayas, which a sandbox hides: %w", err)
	}
	return append(o.paths.usual(), listed...), readable, nil
}

// all are those of Now and of Elsewhere.
func (o ownFiles) all() (hidden, readable []string, err error) {
	hidden, readable = o.Now()
	more, unchanged, err := o.Elsewhere()
	return append(hidden, more...), append(readable, unchanged...), err
}

// OwnPaths are yaya's own folders and files, as GET /status lists them.
type OwnPaths struct {
	Hidden   []string `json:"hidden"`
	Readable []string `json:"readable,omitempty"`
}

// EveryOwn returns the paths that no sandbox of a yaya with these flags shows or changes, with those of
// a running one. It makes the folders, as [ownFiles.Prepare] does.
func (g *Flags) EveryOwn(p Paths, running OwnPaths) (OwnPaths, error) {
	o := g.OwnFiles(p, nil)
	if err := o.Prepare(zerolog.Nop()); err != nil {
		return OwnPaths{}, err
	}
	files, readable, err := o.all()
	return OwnPaths{Hidden: append(Hidden(p.Own()), files...), Readable: readable}.With(running), err
}

// With adds those of another yaya.
func (o OwnPaths) With(other OwnPaths) OwnPaths {
	return OwnPaths{slices.Concat(o.Hidden, other.Hidden), slices.Concat(o.Readable, other.Readable)}
}
