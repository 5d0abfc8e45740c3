package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/internal/agentskill"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/plugins/tool_shell"
)

// folders returns the store of trusted folders: what trusting a folder lets run is
// looked up here, for every surface. seen are the digests of files that it remembers.
func folders(data *os.Root, settings *config.Store, guard *workspace.Guard, boxes *sandbox.Sandboxes, seen *manage.Digests) *folder.Store {
	skills := agentskill.NewLibrary() // remembers what it has read
	store := folder.NewStore(data, guard, func(w *workspace.Workspace) ([]folder.Item, error) {
		var out []folder.Item
		if in, ok := w.Instructions(".", 0); ok {
			out = append(out, folder.Item{Kind: folder.Instructions, Name: in.Path})
		}
		checks := tool_shell.Checks(w)
		if raw, _, ok := settings.Get("plugin.tool_shell.verify"); ok {
			checks = nil
			if err := json.Unmarshal(raw, &checks); err != nil {
				return nil, fmt.Errorf("plugin.tool_shell.verify: %w", err)
			}
		}
		out = append(out, checksHere(boxes, checks)...)
		out = append(out, skillItems(skills, w)...)
		out = append(out, agentItems(w)...)
		hooks, err := hookItems(w, settings.Bool(claudeHooks), seen)
		if err != nil {
			return nil, err
		}
		items, err := seen.Items(w, boxes)
		return slices.Concat(out, hooks, items), err
	})
	more := manage.NewPermits(data.Name())
	store.Allows(func(w *workspace.Workspace) []folder.Item { return more.Items(w, boxes) })
	return store
}

// Folders returns the store of trusted folders for a command that runs no agents.
func (p Paths) Folders(data *os.Root, settings *config.Store) (*folder.Store, error) {
	guard, err := workspace.NewGuard(p.Own()...)
	if err != nil {
		return nil, err
	}
	return folders(data, settings, guard, p.Sandboxes(settings), new(manage.Digests)), nil
}

// checksHere are a folder's checks, with what of their sandbox is enforced here.
func checksHere(boxes *sandbox.Sandboxes, checks []string) []folder.Item {
	var out []folder.Item
	for i, c := range checks {
		item := folder.Item{Kind: folder.Check, Runs: c}
		if i > 0 { // all have the same sandbox
			item.Lacks, item.Weaker = out[0].Lacks, out[0].Weaker
		} else if p, err := tool_shell.CheckPolicy(); err == nil && boxes != nil { // it has a profile
			here := servers.NewHere(boxes, p)
			item.Lacks, item.Weaker = here.Lacks.String(), here.Weaker
		}
		if item.Weaker != "" {
			item.Shown = c + ", " + item.Weaker
		}
		out = append(out, item)
	}
	return out
}

// Explain writes what trusting a folder means, made safe for a terminal.
func Explain(q folder.Question) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The folder %s is not trusted.\n", Whole(q.Folder))
	switch {
	case len(q.Added)+len(q.Removed) > 0:
		b.WriteString("It was trusted, but its content has changed:\n")
		for _, i := range q.Removed {
			fmt.Fprintf(&b, "  - %s\n", Whole(i.String()))
		}
		for _, i := range q.Added {
			fmt.Fprintf(&b, "  + %s\n", Whole(i.String()))
		}
		b.WriteString("If you trust it again, yaya uses the following, with all your rights unless a sandbox is named:\n")
	case len(q.Items) == 0:
		b.WriteString("Nothing in it runs by itself.\n")
	default:
		b.WriteString("If you trust it, yaya uses the following, with all your rights unless a sandbox is named:\n")
	}
	for _, i := range q.Items {
		fmt.Fprintf(&b, "    %s\n", Whole(i.String()))
	}
	if len(q.Allowed) > 0 {
		b.WriteString("You have allowed its servers more, which applies again:\n")
	}
	for _, i := range q.Allowed {
		fmt.Fprintf(&b, "    %s\n", Whole(i.String()))
	}
	b.WriteString("Trusting it does not approve the agent's own changes and commands, nor the agents that it starts.\nUntil you trust it, agents can only read and search the folder.\n")
	return b.String()
}

// Whole writes text so that a terminal shows all of it, on one line, and nothing else.
// The texts of a question about a folder are short.
func Whole(s string) string { return Escaped(s, math.MaxInt) }

// mayStart returns what a server that a folder or a package brings reads and writes, or why it is
// not started.
func (c *core) mayStart(s servers.Server) (at servers.Places, err error) {
	st := c.st
	if s.Package != "" {
		at, err = c.packages.mayStart(s)
	} else {
		at, err = st.digests.MayStart(st.folders, s)
	}
	if err != nil {
		return servers.Places{}, err
	}
	more, err := st.permits.Of(s)
	if err != nil {
		st.at.log.Warn().Err(err).Str("server", s.Name).Msg("a server gets no more than its entry says")
	}
	return at.With(manage.PermitPlaces(s, more)), nil
}

// permitted is a server with what its user allows it.
func (st *stores) permitted(s servers.Server) servers.Server {
	b, err := st.permits.Of(s)
	if err != nil {
		st.at.log.Warn().Err(err).Str("server", s.Name).Msg("a server gets no more than its entry says")
	}
	return s.Permit(b)
}

// mayUse returns the folder that somebody's session works in when it asks for dir, or why
// it may not: nobody but the user of this machine chooses folders freely, since agents
// read there unasked. Links are resolved once, here: what they lead to later is not asked
// for.
func (st *stores) mayUse(who auth.Principal, dir string) (string, error) {
	if who.Kind == auth.Owner {
		return dir, nil
	}
	return st.opened(who.Name(), "other devices", dir)
}

// opened returns a folder that its user has opened to others than people on this machine, or why
// it is closed to them; whom is in the error.
func (st *stores) opened(principal, whom, dir string) (string, error) {
	var roots []string
	if raw, _, ok := st.at.settings.Get("workspace.roots"); ok {
		if err := json.Unmarshal(raw, &roots); err != nil {
			return "", fmt.Errorf("workspace.roots: %w", err)
		}
	}
	at, below, err := st.folders.Below(dir, roots)
	if err == nil && below {
		return at, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		st.at.log.Warn().Err(err).Msg("it cannot be looked up which folders are open to devices")
	}
	st.at.log.Warn().Str("principal", principal).Str("folder", dir).Msg("a session was refused: the folder is not open to " + whom)
	// A folder that is not there is refused in the same words: nobody learns which are.
	return "", fmt.Errorf("the folder %s is not open to %s: on the machine that yaya runs on, trust it (yaya trust %s) or list a folder above it in workspace.roots", dir, whom, dir)
}
