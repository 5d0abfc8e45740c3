package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/mcpbridge/clients"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

type clientRow struct {
	Client string `json:"client"`
	Name   string `json:"name"`
	File   string `json:"file"`
	Found  bool   `json:"found"`
	Yaya   string `json:"yaya,omitempty"`  // the command or the address of yaya's entry
	Other  string `json:"other,omitempty"` // the command of another program that is called yaya there
	Error  string `json:"error,omitempty"`
}

// clientRows looks at the file of each client; one that has several shows those that
// there are.
func clientRows(p paths) []clientRow {
	var out []clientRow
	for _, c := range clients.All(places(p.home)) {
		n := len(out)
		for _, path := range c.Paths {
			r := clientRow{Client: c.ID, Name: c.Name, File: path}
			data, ok, err := readFile(path)
			if !ok && err == nil {
				continue
			}
			r.Found = true
			if err == nil {
				err = r.look(c, data)
			}
			if err != nil {
				r.Error = err.Error()
			}
			out = append(out, r)
		}
		if len(out) == n {
			out = append(out, clientRow{Client: c.ID, Name: c.Name, File: c.Paths[0], Found: installed(p.home, c.Paths[0])})
		}
	}
	return out
}

// look reads the entry named yaya of a client's file.
func (r *clientRow) look(c clients.Client, data []byte) error {
	s, found, err := c.Entry(data)
	if err != nil || !found {
		return err
	}
	foreign := c.Foreign(data)
	switch {
	case foreign == nil:
		r.Yaya = s.Endpoint()
	case s.Command != "":
		r.Other = s.Endpoint()
	default:
		return foreign
	}
	return nil
}

// installed reports whether a client without its file has a folder of its own at least.
func installed(home, path string) bool {
	dir := filepath.Dir(path)
	if dir == home {
		dir = strings.TrimSuffix(path, filepath.Ext(path)) // .claude beside .claude.json
	}
	st, err := os.Stat(dir)
	return err == nil && st.IsDir()
}

// places are where the clients of this user have their files.
func places(home string) []servers.Location {
	return servers.Locations(home, runtime.GOOS, os.Getenv)
}

// clientFile is the file of a client, as it is.
type clientFile struct {
	clients.Client
	path  string
	data  []byte
	found bool
}

// clientFiles reads the files of the named clients: those that there are, or the one
// that the client would write.
func clientFiles(g *globals, c *cobra.Command, names []string, all bool) ([]clientFile, error) {
	p, err := g.paths()
	if err != nil {
		return nil, err
	}
	known := clients.All(places(p.home))
	var out []clientFile
	for _, name := range names {
		i := slices.IndexFunc(known, func(c clients.Client) bool { return c.ID == word(name) || word(c.Name) == word(name) })
		if i < 0 {
			return nil, &usageError{c.CommandPath(), fmt.Errorf("there is no client %q; the clients are %s", name, strings.Join(clientNames(), ", "))}
		}
		if slices.ContainsFunc(out, func(f clientFile) bool { return f.ID == known[i].ID }) {
			continue
		}
		n := len(out)
		for _, path := range known[i].Paths {
			data, ok, err := readFile(path)
			if err != nil {
				return nil, err
			}
			if ok && (len(out) == n || all || known[i].Each) {
				out = append(out, clientFile{known[i], path, data, true})
			}
		}
		if len(out) == n {
			out = append(out, clientFile{Client: known[i], path: known[i].Paths[0]})
		}
	}
	return out, nil
}
