package main

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/rs/zerolog"
)

// ownFiles are the files that a yaya runs by which may lie outside of its folders.
type ownFiles struct {
	config   string   // its configuration folder
	named    []string // by flags: settings, servers, keys
	readable []string // by flags, and no secret: certificates
}

// ownFiles are those of a yaya that was given these files of servers.
func (g *globals) ownFiles(p paths, servers []string) ownFiles {
	named := slices.Clone(servers)
	if g.configFile != "" {
		named = append(named, g.configFile)
	}
	return ownFiles{config: p.config, named: absPaths(named)}
}

// listening adds the files of a listener.
func (o ownFiles) listening(l *listenFlags) ownFiles {
	if l.key != "" {
		o.named, o.readable = append(o.named, absPaths([]string{l.key})...), absPaths([]string{l.cert})
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

// prepare makes the configuration folder: no sandbox hides what is not there, and who
// makes it configures the next start.
func (o ownFiles) prepare(log zerolog.Logger) {
	if o.config == "" {
		return
	}
	if err := os.MkdirAll(o.config, 0o700); err != nil { //nolint:forbidigo // the user names it
		log.Warn().Err(err).Msg("the configuration folder cannot be made: a server that is not bounded to what its entry names may do so")
	}
}

// now are the files as they are: what sandboxes hide, and what they do not change. A file
// of the configuration folder may be a link, as in repositories of dotfiles: where it leads
// counts like the file.
func (o ownFiles) now() (hidden, readable []string) {
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

// ownPaths are what GET /status says of yaya's own folders and files.
type ownPaths struct {
	Hidden   []string `json:"hidden"`
	Readable []string `json:"readable,omitempty"`
}

// with adds those of another yaya.
func (o ownPaths) with(other ownPaths) ownPaths {
	return ownPaths{slices.Concat(o.Hidden, other.Hidden), slices.Concat(o.Readable, other.Readable)}
}
