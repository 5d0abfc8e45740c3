package manage

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/yaya-ai/yaya/internal/userfile"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Places returns the places of this user's client files.
func Places(home string) []servers.Location {
	return servers.Locations(home, runtime.GOOS, os.Getenv)
}

// Found is the configuration of another client, or of one of its projects.
type Found struct {
	Loc     servers.Location
	Label   string // who has it
	Project string // the folder that it is for
	Config  servers.Config
	Err     error // it cannot be read
}

// From says where it comes from.
func (f Found) From() string { return fmt.Sprintf("%s (%s)", f.Label, f.Loc.Path) }

// Source is the configuration as an import takes it.
func (f Found) Source() servers.Source {
	short := string(f.Loc.Format)
	switch {
	case f.Project != "":
		short = filepath.Base(f.Project)
	case f.Loc.Client == FromFile:
		short = strings.TrimSuffix(strings.TrimLeft(filepath.Base(f.Loc.Path), "."), filepath.Ext(f.Loc.Path))
	}
	return servers.Source{From: f.From(), Short: short, Config: f.Config}
}

// FromFile is the client name for a file that the user names.
const FromFile = "file"

// Discover finds the servers that other clients have configured.
func Discover(home string) []Found {
	var out []Found
	for _, loc := range Places(home) {
		out = append(out, ReadClient(loc)...)
	}
	return out
}

// ReadClient reads the file of a client, if there is one.
func ReadClient(loc servers.Location) []Found {
	data, ok, err := userfile.Read(loc.Path)
	if !ok && err == nil {
		return nil
	}
	f := Found{Loc: loc, Label: loc.Client, Err: err}
	if err == nil {
		f.Config, f.Err = servers.Parse(loc.Path, data, loc.Format)
	}
	if f.Err == nil {
		f.Err = readSwitches(loc, &f.Config)
	}
	out := []Found{f}
	for _, p := range f.Config.Projects {
		out = append(out, Found{Loc: loc, Label: fmt.Sprintf("%s in %s", loc.Client, p.Dir), Project: p.Dir, Config: p.Config})
	}
	return out
}

// readSwitches disables the servers that a client has disabled in a separate file.
func readSwitches(loc servers.Location, cfg *servers.Config) error {
	file := loc.Switches()
	if file == "" {
		return nil
	}
	data, ok, err := userfile.Read(file)
	if err != nil || !ok {
		return err
	}
	return cfg.SwitchOff(file, data)
}
