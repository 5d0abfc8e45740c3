package mcpbridge

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// maxTold bounds how many paths of a server's entry are checked at each start.
const maxTold = 128

// setInside are variables that a sandbox sets, or that list the folders of programs.
var setInside = []string{"HOME", "PATH", "TMPDIR", "PWD", "OLDPWD"}

// told returns the paths that a server's entry names in its arguments and its environment, as
// absolute paths; s is the entry as written, x with its variables expanded. It omits a path
// that contains a secret, since paths are shown.
func (b *Bridge) told(s, x servers.Server) (all []string) {
	dir := x.Folder()
	add := func(name string) {
		switch {
		case name == "~" || strings.HasPrefix(name, "~/"): // many programs expand it themselves
			if b.cfg.Home == "" {
				return
			}
			name = filepath.Join(b.cfg.Home, name[1:])
		case filepath.IsAbs(name):
		case dir == "" || !strings.HasPrefix(name, ".."): // the content of its folder is visible
			return
		default:
			name = filepath.Join(dir, name)
		}
		if name = plausible(name); name != "" && len(all) < maxTold && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	for i, arg := range x.Args {
		if i < len(s.Args) && servers.NamesSecret(s.Args[i]) {
			continue
		}
		add(arg)
		if _, value, ok := strings.Cut(arg, "="); ok { // --repository=PATH
			add(value)
		}
	}
	for name, written := range s.Env {
		if !slices.Contains(setInside, name) && !strings.HasPrefix(name, "XDG_") && !servers.NamesSecret(written) {
			add(x.Env[name])
		}
	}
	return all
}

// watch makes a sandbox report the paths that a server's entry names but the sandbox hides, and
// keeps them to explain the server's complaints.
func (b *Bridge) watch(s, x servers.Server, policy *sandbox.Policy, hidden *unseen, tell func(upstream.Denial)) {
	named := b.told(s, x)
	policy.Told = slices.Clone(named)
	for _, path := range named { // for a file that does not exist yet, look up its folder
		if dir := filepath.Dir(path); dir != "/" && !slices.Contains(policy.Told, dir) {
			policy.Told = append(policy.Told, dir)
		}
	}
	hidden.begin()
	policy.Unseen = func(path string) {
		if !slices.Contains(named, path) {
			hidden.add(path, true)
			return
		}
		hidden.add(path, false)
		tell(b.notSeen(x, path))
	}
}

// unseen holds the paths that a server's entry names but its sandbox hides, as of the last
// start, and the hidden folders above them. Its methods are safe for concurrent use.
type unseen struct {
	mu           sync.Mutex
	paths, above []string
}

func (u *unseen) begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.paths, u.above = nil, nil
}

func (u *unseen) add(path string, above bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if above {
		u.above = append(u.above, path)
		return
	}
	u.paths = append(u.paths, path)
}

// in returns the longest of the paths that a line mentions, or "".
func (u *unseen) in(line string) (path string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, p := range u.paths {
		if len(p) > len(path) && names(line, p) {
			path = p
		}
	}
	return path
}

// around are the characters that can surround a path in a line.
const around = " \t'\"`,;:=!?()[]{}<>"

// names reports whether a line mentions a path, or anything below it.
func names(line, path string) bool {
	for from := 0; ; {
		at := strings.Index(line[from:], path)
		if at < 0 {
			return false
		}
		at += from
		from = at + len(path)
		begins := at == 0 || strings.ContainsAny(line[at-1:at], around)
		if begins && (from == len(line) || strings.ContainsAny(line[from:from+1], "/"+around)) {
			return true
		}
	}
}

// holds reports whether a path would lie in one of the folders.
func (u *unseen) holds(path string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Contains(u.above, filepath.Dir(path))
}

// notSeen tells that a server starts with a path that its sandbox hides.
func (b *Bridge) notSeen(x servers.Server, path string) upstream.Denial {
	d := upstream.Denial{What: fmt.Sprintf("server %q does not see %s, which its entry names (profile %s)", x.Name, path, servers.SandboxServer), Says: x.Project, Looked: true}
	own, _ := b.cfg.Sandboxes.Paths()
	if leadsInto(own, path) {
		d.What = fmt.Sprintf("server %q does not see %s, which belongs to yaya itself (profile %s)", x.Name, path, servers.SandboxServer)
		return d
	}
	at, why := b.offer(path)
	switch {
	case at != "":
		d.What += why + "; use --write instead of --read if it has to write there"
		d.Allow = fmt.Sprintf("yaya mcp allow %s --read %s", word(x.Name), word(at))
	case why != "":
		d.What += ": " + why
	}
	return d
}

// complaint returns the denial that a line of a server's standard error or of a failure points
// to; for most lines, the zero Denial.
func (b *Bridge) complaint(x servers.Server, hidden *unseen, line string) upstream.Denial {
	d := b.fileDenied(x, line)
	if d.What != "" {
		return d
	}
	if path := hidden.in(line); path != "" {
		return b.notSeen(x, path)
	}
	if at := notThere().FindStringIndex(line); at != nil {
		if path := complainedOf(line, at, ""); path != "" && hidden.holds(path) {
			return b.mayBeKept(x, path, "writing", "--write")
		}
	}
	return d
}
