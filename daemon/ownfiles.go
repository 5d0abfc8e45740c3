package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/secrets"
)

// ownFiles are the files that a yaya runs by which may lie outside its folders.
type ownFiles struct {
	paths    Paths    // of the yaya; without a home folder there are no others
	config   string   // its configuration folder
	named    []string // by flags: settings, servers, keys
	readable []string // by flags, and no secret: certificates
}

// OwnFiles are those of a yaya that was given these files of servers.
func (g *Flags) OwnFiles(p Paths, mcpConfig []string) ownFiles {
	named := slices.Clone(mcpConfig)
	if g.ConfigFile != "" {
		named = append(named, g.ConfigFile)
	}
	return ownFiles{paths: p, config: p.Config, named: absPaths(named)}
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
	if o.config == "" {
		return nil
	}
	if err := os.MkdirAll(o.config, 0o700); err != nil { //nolint:forbidigo // the user names it
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
	p := Paths{Config: o.config}
	for _, name := range []string{p.Servers(), p.settings(), filepath.Join(o.config, secrets.KeyFile)} {
		if to, err := os.Readlink(name); err == nil && Missing(name) {
			return fmt.Errorf("%s is a link to %s, which is not there, and which a program in a sandbox could make: create that file, or remove the link", name, to)
		}
	}
	return nil
}

// Now are the files as they are: what sandboxes hide, and what they do not change. A file
// of the configuration folder may be a link, as in repositories of dotfiles: where it leads
// counts like the file.
func (o ownFiles) Now() (hidden, readable []string) {
	hidden = slices.Clone(o.named)
	entries, err := os.ReadDir(o.config)
	if err != nil {
		return hidden, o.readable // it is not there, or this is a sandbox of yaya's, which hides it
	}
	for _, e := range entries {
		name := filepath.Join(o.config, e.Name())
		if e.Type()&os.ModeSymlink == 0 {
			continue
		}
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() { // yaya reads no folder there
			hidden = append(hidden, name)
		}
	}
	return hidden, o.readable
}

// Elsewhere are the folders and files of other yayas of the user, those of one without
// flags among them.
func (o ownFiles) Elsewhere() ([]string, error) {
	listed, err := o.paths.enlisted()
	if err != nil {
		return nil, fmt.Errorf("the folders of other yayas, which a sandbox hides: %w", err)
	}
	return append(o.paths.usual(), listed...), nil
}

// all are those of Now and of Elsewhere.
func (o ownFiles) all() (hidden, readable []string, err error) {
	hidden, readable = o.Now()
	elsewhere, err := o.Elsewhere()
	return append(hidden, elsewhere...), readable, err
}

// OwnPaths are what GET /status says of yaya's own folders and files.
type OwnPaths struct {
	Hidden   []string `json:"hidden"`
	Readable []string `json:"readable,omitempty"`
}

// With adds those of another yaya.
func (o OwnPaths) With(other OwnPaths) OwnPaths {
	return OwnPaths{slices.Concat(o.Hidden, other.Hidden), slices.Concat(o.Readable, other.Readable)}
}
