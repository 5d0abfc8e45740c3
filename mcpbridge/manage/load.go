package manage

import (
	"fmt"

	"github.com/yaya-ai/yaya/internal/userfile"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Loaded is the configuration that was found.
type Loaded struct {
	Servers  []servers.Server
	Invalid  []servers.Invalid // that cannot be used, with those of Pending
	Pending  []Pending
	Warnings []string
	brought  map[string]string // what identifies the servers that a folder brings, by name
}

// Load reads the named files, or yaya's own file when none is named.
func Load(ownFile string, files []string) (Loaded, error) {
	var l Loaded
	own := len(files) == 0
	if own {
		files = []string{ownFile}
	}
	for _, file := range files {
		if _, err := l.file(file, own); err != nil {
			return l, err
		}
	}
	return l, nil
}

// file adds the servers of a file and returns its content, nil if it is yaya's own and
// not there.
func (l *Loaded) file(file string, own bool) ([]byte, error) {
	data, found, err := userfile.Read(file)
	if err != nil {
		return nil, err
	}
	if !found {
		if own {
			return nil, nil
		}
		return nil, fmt.Errorf("there is no file %s", file)
	}
	format := servers.FormatYaya
	if !own {
		format = servers.Detect(file, data)
	}
	cfg, err := servers.Parse(file, data, format)
	if err != nil {
		return nil, err
	}
	l.Warnings = append(l.Warnings, cfg.Warnings...)
	l.Invalid = append(l.Invalid, cfg.Invalid...)
	l.Servers = append(l.Servers, cfg.Servers...)
	return data, nil
}

// Here adds the servers of the project in dir, or in the current folder, unless
// files were named.
func (l *Loaded) Here(files []string, dir string, store *folder.Store) error {
	if len(files) > 0 {
		return nil
	}
	return l.Project(dir, store)
}
