package manage

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// projectFile is the file in which a project configures MCP servers for its developers.
const projectFile = ".mcp.json"

// ErrNotTrusted says that a server does not start because the user has not trusted its folder.
var ErrNotTrusted = errors.New("you have not trusted that folder")

// Pending is a server of a folder that the user has not trusted.
type Pending struct {
	Server servers.Server
	Folder folder.Status
	Cause  error // why it does not start
}

// Project adds the servers that dir brings, if the folder is trusted. The others are
// not started (UP-21).
func (l *Loaded) Project(dir string, store *folder.Store) error {
	dir, err := folder.Resolve(dir)
	if err != nil {
		return err
	}
	w, err := (*workspace.Guard)(nil).Open(dir) // the store's guard decides what is trusted
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	cfg, err := projectServers(w)
	if err != nil {
		// A project's mistake must not prevent the user from working.
		l.Warnings = append(l.Warnings, fmt.Sprintf("the project's %v", err))
		return nil
	}
	if len(cfg.Servers)+len(cfg.Invalid)+len(cfg.Warnings) == 0 {
		return nil
	}
	l.Warnings = append(l.Warnings, cfg.Warnings...)
	l.brought = map[string]string{}
	st, err := store.Status(dir)
	if err != nil { // such as in a folder that yaya keeps its own files in
		for _, s := range cfg.Servers {
			l.Invalid = append(l.Invalid, servers.Invalid{Name: s.Name, File: s.File, Err: fmt.Errorf("the folder that brings it cannot be trusted: %w", err)})
		}
		return nil
	}
	l.Invalid = append(l.Invalid, cfg.Invalid...)
	for _, s := range cfg.Servers {
		if slices.ContainsFunc(l.Servers, func(o servers.Server) bool { return o.Name == s.Name }) {
			l.Warnings = append(l.Warnings, fmt.Sprintf("%s: server %q is left out: you have one of that name", s.File, s.Name))
			continue
		}
		if i := slices.IndexFunc(st.Items, func(i folder.Item) bool { return i.Kind == folder.Server && i.Name == servers.Shown(s.Name) }); i >= 0 {
			l.brought[s.Name] = st.Items[i].Digest + " " + st.Items[i].Runs + " " + st.Items[i].Lacks // where paths lead, too
		}
		at, same := agreed(st, dir, s, new(Digests))
		if st.Trusted && same { // unchanged since it was read here
			l.Servers = append(l.Servers, s)
			continue
		}
		why := unlike(st, s, at)
		l.Pending = append(l.Pending, Pending{s, st, why})
		l.Invalid = append(l.Invalid, servers.Invalid{Name: s.Name, File: s.File, Err: fmt.Errorf("the folder %s brings it, and %w: yaya trust %s (the server would use %s)", dir, why, dir, s.Endpoint())})
	}
	return nil
}

// MayStart returns what a server that a folder brings reads and writes, or why it is not
// started: every start looks again whether the folder is trusted, and with this very
// server. A path that leads elsewhere than when the folder was trusted is another server.
func (d *Digests) MayStart(store *folder.Store, s servers.Server) (servers.Places, error) {
	dir := filepath.Dir(s.File)
	st, err := store.Status(dir)
	at, same := servers.Places{}, false
	if err == nil {
		fresh := new(Digests)
		at, same = agreed(st, dir, s, fresh)
		d.learn(fresh)
	}
	if err == nil && (!st.Trusted || !same) {
		err = unlike(st, s, at)
	}
	if err != nil {
		return servers.Places{}, &UntrustedError{dir, err}
	}
	return at, nil
}

// agreed returns what a server of a folder reads and writes, and whether the folder is as
// it was looked at with exactly this server. fresh are digests of files as they are.
func agreed(st folder.Status, dir string, s servers.Server, fresh *Digests) (servers.Places, bool) {
	w, err := (*workspace.Guard)(nil).Open(dir)
	if err != nil {
		return servers.Places{}, false
	}
	defer func() { _ = w.Close() }()
	at, left := s.Places(inFolder(w.Dir())), int64(maxBroughtBytes)
	item, err := fresh.item(w, s, at, servers.Here{}, &left) // the status knows what is enforced
	return at, err == nil && slices.ContainsFunc(st.Items, item.Same)
}

// unlike says why a folder's server is not what its folder was trusted with.
func unlike(st folder.Status, s servers.Server, at servers.Places) error {
	what := st.Differences()
	if led := ledElsewhere(st, s, at); led != "" {
		what = "a path leads elsewhere than when the folder was trusted: " + led
	}
	switch {
	case st.Was == nil:
		return ErrNotTrusted
	case what == "": // it was changed a moment ago
		return fmt.Errorf("%w with this server as it is now", ErrNotTrusted)
	}
	return fmt.Errorf("%w as it is now: %s", ErrNotTrusted, what)
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

// UntrustedError says why a folder's server does not start: the folder is not trusted, or not
// with this server.
type UntrustedError struct {
	dir   string
	cause error
}

func (e *UntrustedError) Error() string {
	return fmt.Sprintf("the folder %s brings it: %v: yaya trust %s", e.dir, e.cause, e.dir)
}

func (e *UntrustedError) Unwrap() error { return e.cause }

// RetryAfter prevents pointless starts of the server.
func (*UntrustedError) RetryAfter() time.Duration { return time.Minute }
