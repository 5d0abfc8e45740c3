package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/plugins/tool_shell"
)

// Bounds of the files of a folder that a server's command line names.
const (
	maxServerFiles = 16
	maxServerFile  = 4 << 20 // bytes of each
)

// folders returns the store of trusted folders: what trusting a folder lets run is
// looked up here, for every surface.
func folders(data *os.Root, settings *config.Store, guard *workspace.Guard) *folder.Store {
	return folder.NewStore(data, func(dir string) ([]folder.Item, error) {
		w, err := guard.Open(dir)
		if err != nil {
			return nil, err
		}
		defer func() { _ = w.Close() }()
		var out []folder.Item
		if _, err := w.Text("AGENTS.md"); err == nil {
			out = append(out, folder.Item{Kind: folder.Instructions, Name: "AGENTS.md"})
		}
		checks := tool_shell.Checks(w)
		if raw, _, ok := settings.Get("plugin.tool_shell.verify"); ok {
			var own []string
			if json.Unmarshal(raw, &own) == nil {
				checks = own
			}
		}
		for _, c := range checks {
			out = append(out, folder.Item{Kind: folder.Check, Runs: c})
		}
		cfg, err := projectServers(dir)
		if err != nil {
			return out, nil //nolint:nilerr // a file that cannot be read starts nothing; serve says why
		}
		for _, s := range cfg.Servers {
			digest, err := serverDigest(w, s)
			if err != nil {
				return nil, err
			}
			out = append(out, folder.Item{Kind: folder.Server, Name: s.Name, Runs: s.Runs(), Digest: digest})
		}
		return out, nil
	})
}

// folders returns the store of trusted folders for a command that runs no agents.
func (p paths) folders(data *os.Root, settings *config.Store) (*folder.Store, error) {
	guard, err := workspace.NewGuard(p.own()...)
	if err != nil {
		return nil, err
	}
	return folders(data, settings, guard), nil
}

// projectServers reads the servers that the .mcp.json of a folder configures.
func projectServers(dir string) (servers.Config, error) {
	file := filepath.Join(dir, projectFile)
	data, found, err := readFile(file)
	if err != nil || !found {
		return servers.Config{}, err
	}
	return servers.Parse(file, data, servers.FormatClaudeCode)
}

// serverDigest covers everything that defines a server: its whole configuration, and
// the files of the folder that its command line names.
func serverDigest(w *workspace.Workspace, s servers.Server) (string, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	h.Write(raw)
	for i, word := range append([]string{s.Command}, s.Args...) {
		if i == maxServerFiles {
			break
		}
		name, err := w.Clean(filepath.Join(s.Dir, word))
		if err != nil {
			continue // it lies elsewhere
		}
		f, err := w.Root().Open(name)
		if err != nil {
			continue
		}
		st, err := f.Stat()
		if err == nil && st.Mode().IsRegular() {
			fmt.Fprintf(h, "\x00%s\x00", name)
			_, err = io.Copy(h, io.LimitReader(f, maxServerFile))
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// explain writes what trusting a folder means, made safe for a terminal.
func explain(q folder.Question) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Trust the folder %s?\n", whole(q.Folder))
	switch {
	case len(q.Added)+len(q.Removed) > 0:
		b.WriteString("It was trusted before, and brings something else now:\n")
		for _, i := range q.Removed {
			fmt.Fprintf(&b, "  - %s\n", whole(i.String()))
		}
		for _, i := range q.Added {
			fmt.Fprintf(&b, "  + %s\n", whole(i.String()))
		}
		b.WriteString("Together it would bring:\n")
	case len(q.Items) == 0:
		b.WriteString("Nothing in it runs by itself.\n")
	default:
		b.WriteString("With your rights, and without another question, it would bring:\n")
	}
	for _, i := range q.Items {
		fmt.Fprintf(&b, "    %s\n", whole(i.String()))
	}
	b.WriteString("The agent could then change files and run commands there, each after a question.\nUntil then the agent can read and search the folder, and nothing else.\n")
	return b.String()
}

// whole writes text so that a terminal shows all of it, on one line, and nothing else.
// The texts of a question about a folder are short.
func whole(s string) string { return escaped(s, math.MaxInt) }

// mayUse returns why somebody may not have an agent work in a folder: nobody but the
// user of this machine chooses folders freely, since agents read there unasked.
func (a *app) mayUse(who auth.Principal, dir string) error {
	if who.Kind == auth.Owner {
		return nil
	}
	var roots []string
	if raw, _, ok := a.kernel.Settings.Get("workspace.roots"); ok {
		if err := json.Unmarshal(raw, &roots); err != nil {
			return fmt.Errorf("workspace.roots: %w", err)
		}
	}
	below, err := a.folders.Below(dir, roots)
	if err == nil && below {
		return nil
	}
	// A folder that is not there is refused in the same words: nobody learns which are.
	return fmt.Errorf("the folder %s is not open to other devices: on the machine that yaya runs on, trust it (yaya trust %s) or list a folder above it in workspace.roots", dir, dir)
}
