package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/plugins/tool_shell"
)

// folders returns the store of trusted folders: what trusting a folder lets run is
// looked up here, for every surface.
func folders(data *os.Root, settings *config.Store, guard *workspace.Guard) *folder.Store {
	seen := new(digests)
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
			checks = nil
			if err := json.Unmarshal(raw, &checks); err != nil {
				return nil, fmt.Errorf("plugin.tool_shell.verify: %w", err)
			}
		}
		for _, c := range checks {
			out = append(out, folder.Item{Kind: folder.Check, Runs: c})
		}
		cfg, err := projectServers(w)
		if err != nil {
			return out, nil //nolint:nilerr // a file that cannot be read starts nothing; serve says why
		}
		items, err := seen.brought(w, cfg.Servers)
		return append(out, items...), err
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

// explain writes what trusting a folder means, made safe for a terminal.
func explain(q folder.Question) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The folder %s is not trusted.\n", whole(q.Folder))
	switch {
	case len(q.Added)+len(q.Removed) > 0:
		b.WriteString("It was, and brings something else now:\n")
		for _, i := range q.Removed {
			fmt.Fprintf(&b, "  - %s\n", whole(i.String()))
		}
		for _, i := range q.Added {
			fmt.Fprintf(&b, "  + %s\n", whole(i.String()))
		}
		b.WriteString("If you trust it again, this is used without another question, and with your rights where no sandbox is named:\n")
	case len(q.Items) == 0:
		b.WriteString("Nothing in it runs by itself.\n")
	default:
		b.WriteString("If you trust it, this is used without another question, and with your rights where no sandbox is named:\n")
	}
	for _, i := range q.Items {
		fmt.Fprintf(&b, "    %s\n", whole(i.String()))
	}
	b.WriteString("Changes and commands of the agent are asked about in any case.\nWithout your trust, the agent can only read and search the folder.\n")
	return b.String()
}

// whole writes text so that a terminal shows all of it, on one line, and nothing else.
// The texts of a question about a folder are short.
func whole(s string) string { return escaped(s, math.MaxInt) }

// mayStart returns why a server that a folder brings is not started, or what it reads and
// writes: every start looks again whether the folder is trusted, and with this very
// server. A path that leads elsewhere than when the folder was trusted is another server.
func (a *app) mayStart(s servers.Server) (servers.Places, error) {
	dir := filepath.Dir(s.File)
	st, err := a.folders.Status(dir)
	at, same := servers.Places{}, false
	if err == nil {
		at, same = agreed(st, dir, s)
	}
	if err == nil && (!st.Trusted || !same) {
		err = errors.New("it is not trusted with this server as it is now")
		if led := ledElsewhere(st, s, at); led != "" {
			err = fmt.Errorf("a path leads elsewhere than when the folder was trusted: %s", led)
		}
	}
	if err != nil {
		return servers.Places{}, &untrustedError{dir, err}
	}
	more, err := a.permits.of(s)
	if err != nil {
		a.log.Warn().Err(err).Str("server", s.Name).Msg("a server gets no more than its entry says")
	}
	return at.With(permitPlaces(s, more)), nil
}

// agreed returns what a server of a folder reads and writes, and whether the folder is as
// it was looked at with exactly this server.
func agreed(st folder.Status, dir string, s servers.Server) (servers.Places, bool) {
	w, err := (*workspace.Guard)(nil).Open(dir)
	if err != nil {
		return servers.Places{}, false
	}
	defer func() { _ = w.Close() }()
	at, left := s.Places(inFolder(w.Dir())), int64(maxBroughtBytes)
	item, err := new(digests).item(w, s, at, &left)
	return at, err == nil && slices.Contains(st.Items, item)
}

// ledElsewhere names a path of a server that was shown otherwise when its folder was
// trusted, "" if the server has changed in another way, too.
func ledElsewhere(st folder.Status, s servers.Server, at servers.Places) string {
	for _, now := range st.Added {
		for _, was := range st.Removed {
			if now.Kind != folder.Server || now.Name != servers.Shown(s.Name) || was.Kind != now.Kind || was.Name != now.Name || was.Digest != now.Digest {
				continue
			}
			for _, p := range slices.Concat(at.Read, at.Write) {
				if says := at.Says(p); !strings.Contains(was.Runs, says) || strings.Contains(was.Runs, says+" (") {
					return says
				}
			}
		}
	}
	return ""
}

// untrustedError says that a folder's server is not started.
type untrustedError struct {
	dir   string
	cause error
}

func (e *untrustedError) Error() string {
	return fmt.Sprintf("the folder %s brings it: %v: yaya trust %s", e.dir, e.cause, e.dir)
}

func (e *untrustedError) Unwrap() error { return e.cause }

// RetryAfter keeps the server from being started in vain.
func (*untrustedError) RetryAfter() time.Duration { return time.Minute }

// mayUse returns the folder that somebody's session works in when it asks for dir, or why
// it may not: nobody but the user of this machine chooses folders freely, since agents
// read there unasked. Links are resolved once, here: what they lead to later is not asked
// for.
func (a *app) mayUse(who auth.Principal, dir string) (string, error) {
	if who.Kind == auth.Owner {
		return dir, nil
	}
	var roots []string
	if raw, _, ok := a.kernel.Settings.Get("workspace.roots"); ok {
		if err := json.Unmarshal(raw, &roots); err != nil {
			return "", fmt.Errorf("workspace.roots: %w", err)
		}
	}
	at, below, err := a.folders.Below(dir, roots)
	if err == nil && below {
		return at, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.log.Warn().Err(err).Msg("it cannot be looked up which folders are open to devices")
	}
	a.log.Warn().Str("principal", who.Name()).Str("folder", dir).Msg("a session was refused: the folder is not open to devices")
	// A folder that is not there is refused in the same words: nobody learns which are.
	return "", fmt.Errorf("the folder %s is not open to other devices: on the machine that yaya runs on, trust it (yaya trust %s) or list a folder above it in workspace.roots", dir, dir)
}
