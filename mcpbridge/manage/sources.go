package manage

import (
	"fmt"
	"strings"

	"github.com/yaya-ai/yaya/internal/userfile"
	"github.com/yaya-ai/yaya/mcpbridge/clients"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// ClientNames are the words for the clients whose servers can be taken over.
func ClientNames() []string {
	var out []string
	for _, f := range servers.Formats {
		if f != servers.FormatYaya {
			out = append(out, string(f))
		}
	}
	return out
}

// Sources reads the configurations of the named clients and files, or of all clients of
// this user when none is named.
func Sources(home string, names []string) ([]Found, error) {
	if len(names) == 0 {
		return Discover(home), nil
	}
	var out []Found
	for _, name := range names {
		var mine []servers.Location
		for _, l := range Places(home) {
			if clients.Word(name) == string(l.Format) || clients.Word(name) == clients.Word(l.Client) || clients.Word(name) == clients.Word(l.Format.Client()) {
				mine = append(mine, l)
			}
		}
		n := len(out)
		for _, l := range mine {
			out = append(out, ReadClient(l)...)
		}
		if len(out) > n {
			continue
		}
		data, ok, err := userfile.Read(name)
		switch {
		case err != nil:
			return nil, err
		case !ok && len(mine) > 0:
			return nil, fmt.Errorf("%s has no servers on this machine: there is no file %s", mine[0].Format.Client(), mine[0].Path)
		case !ok:
			return nil, &UnknownSource{name}
		}
		format := servers.Detect(name, data)
		cfg, err := servers.Parse(name, data, format)
		if err != nil {
			return nil, err
		}
		loc := servers.Location{Client: FromFile, Path: name, Format: format}
		out = append(out, Found{Loc: loc, Label: FromFile, Config: cfg})
		for _, pr := range cfg.Projects {
			out = append(out, Found{Loc: loc, Label: "file for " + pr.Dir, Project: pr.Dir, Config: pr.Config})
		}
	}
	return out, nil
}

// UnknownSource is a word that names neither a client nor a file.
type UnknownSource struct{ name string }

func (e *UnknownSource) Error() string {
	return fmt.Sprintf("%q is neither a client nor a file; the clients are %s", e.name, strings.Join(ClientNames(), ", "))
}

// Taken returns the servers of yaya's own file, for what an import finds to be compared
// with. One that cannot be used has its name, too.
func Taken(ownFile string) ([]servers.Server, error) {
	data, _, err := userfile.Read(ownFile)
	if err != nil {
		return nil, err
	}
	cfg, err := servers.Parse(ownFile, data, servers.FormatYaya)
	for _, inv := range cfg.Invalid {
		cfg.Servers = append(cfg.Servers, servers.Server{Name: inv.Name})
	}
	return cfg.Servers, err
}
