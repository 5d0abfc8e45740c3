package mcpbridge

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// hostDenied says that a server was kept from a host, and how to allow it.
func hostDenied(server string, d sandbox.Denial) upstream.Denial {
	text := fmt.Sprintf("server %q was kept from reaching %s (profile %s)", server, net.JoinHostPort(d.Host, strconv.Itoa(d.Port)), servers.SandboxServer)
	if d.Allow == "" {
		return upstream.Denial{What: text + ": " + d.Why}
	}
	return upstream.Denial{What: text, Allow: fmt.Sprintf("yaya mcp allow %s --host %s", word(server), word(d.Allow))}
}

// hostUnreached says that a server could not reach an allowed host.
func hostUnreached(server, host string, port int, why string) upstream.Denial {
	return upstream.Denial{What: fmt.Sprintf("server %q could not reach %s (profile %s): %s", server, net.JoinHostPort(host, strconv.Itoa(port)), servers.SandboxServer, why)}
}

// plainName matches a word that needs no quoting in a shell.
var plainName = lazyregexp.New(`^[\pL\pN._:/-]+$`)

func word(s string) string {
	if plainName().MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

var (
	// notThere matches programs' errors about a file that a sandbox hides.
	notThere = lazyregexp.New(`(?i)\bENOENT\b|no such file or directory`)
	// toWrite matches lines about an attempt to write.
	toWrite = lazyregexp.New(`(?i)\bEROFS\b|read-only file system|\b(mkdir|write|writing|create|creating|unlink|rename|rmdir|chmod|touch)\b`)
	// absolute matches an absolute path in a line, as group 1.
	absolute = lazyregexp.New("(?:^|[\\s'\"`:=(\\[])(/[^\\s'\"`:,;()<>\\[\\]{}]+)")
)

// fileDenied says that a server may have been kept from the file that a line of its standard
// error or of a failure complains about. It returns the zero Denial if the sandbox is not the
// reason. Only the server knows for sure.
func (b *Bridge) fileDenied(x servers.Server, line string) upstream.Denial {
	if x.SandboxProfile() != servers.SandboxServer {
		return upstream.Denial{}
	}
	at := sandbox.FileRefused().FindStringIndex(line)
	gone := at == nil
	if gone {
		at = notThere().FindStringIndex(line)
	}
	if at == nil {
		return upstream.Denial{}
	}
	none := upstream.Denial{Looked: true}
	path := complainedOf(line, at, x.Folder())
	if path == "" {
		return none
	}
	named := servers.Sandbox{}
	if x.Sandbox != nil {
		named = *x.Sandbox
	}
	below := func(dirs []string) bool { return sandbox.Within(dirs, path) }
	readable := below(x.Reads())
	if script := x.Script(servers.Scope{Home: b.cfg.Home}); script != "" {
		readable = readable || below([]string{script})
	}
	own, _ := b.cfg.Sandboxes.Paths()
	switch {
	case below(servers.OfSystem) && !readable && !below(own):
		return none
	case leadsInto(own, path):
		return upstream.Denial{What: fmt.Sprintf("server %q may have been kept from %s, which belongs to yaya itself (profile %s)", x.Name, path, servers.SandboxServer), Looked: true}
	case below(named.Write), below([]string{b.cfg.Sandboxes.Cache}):
		return none
	}
	if gone {
		if _, err := os.Lstat(path); err != nil || readable {
			return none // the file does not exist at all
		}
	}
	verb, flag := "reading", "--read"
	if readable || toWrite().MatchString(line) {
		verb, flag = "writing", "--write"
	}
	return b.mayBeKept(x, path, verb, flag)
}

// mayBeKept says that a server may have been kept from a path, and how to allow it.
func (b *Bridge) mayBeKept(x servers.Server, path, verb, flag string) upstream.Denial {
	d := upstream.Denial{What: fmt.Sprintf("server %q may have been kept from %s %s (profile %s)", x.Name, verb, path, servers.SandboxServer), Says: true, Looked: true}
	instead, why := b.offer(path)
	switch {
	case instead != "":
		d.What += why
		d.Allow = fmt.Sprintf("yaya mcp allow %s %s %s", word(x.Name), flag, word(instead))
	case why != "":
		d.What += ": " + why
	}
	return d
}

// leadsInto reports whether a path is one of some folders or lies in one, directly or through
// symbolic links.
func leadsInto(dirs []string, path string) bool {
	if sandbox.Within(dirs, path) {
		return true
	}
	to := sandbox.Real(path)
	return slices.ContainsFunc(dirs, func(d string) bool { return sandbox.Within([]string{sandbox.Real(d)}, to) })
}

// complainedOf returns the file that a line complains about, given the position of the reason,
// or "" if the line names no file. Relative paths are relative to dir, where the server works;
// "" is its private home, where nothing is denied.
func complainedOf(line string, at []int, dir string) string {
	// Programs name the file after the reason, and shells before it.
	after, before := line[at[1]:], line[:at[0]]
	if found := absolute().FindStringSubmatch(after); found != nil {
		return plausible(found[1])
	}
	if found := absolute().FindAllStringSubmatch(before, -1); len(found) > 0 {
		return plausible(found[len(found)-1][1])
	}
	if dir == "" {
		return ""
	}
	name := ""
	if found := quoted().FindStringSubmatch(after); found != nil {
		name = found[1]
	} else if found := quotedBefore().FindStringSubmatch(before); found != nil {
		name = found[1]
	} else if found := plainBefore().FindStringSubmatch(before); found != nil {
		name = found[1]
	}
	if name = plausible(name); name == "" || !filepath.IsLocal(name) {
		return ""
	}
	// A match may be an ordinary word: it counts as a file if it exists, or if it was to be
	// written in an existing folder.
	path := filepath.Join(dir, name)
	if _, err := os.Lstat(path); err == nil {
		return path
	}
	if st, err := os.Stat(filepath.Dir(path)); err != nil || !st.IsDir() || !toWrite().MatchString(line) {
		return ""
	}
	return path
}

// Bounds of a path in an examined line: each part of it is looked up.
const (
	maxPath  = 1 << 10 // bytes
	maxParts = 64
)

// plausible returns a path in its shortest form, or "" if it is too long to look up on behalf
// of a server.
func plausible(path string) string {
	if path == "" || len(path) > maxPath || strings.Count(path, "/") > maxParts {
		return ""
	}
	return filepath.Clean(path)
}

var (
	// quoted, quotedBefore and plainBefore match a relative path after or before a reason, as
	// group 1.
	quoted       = lazyregexp.New(`^[^'"‘“]{0,40}['"‘“]([^'"’”\\]+)['"’”]`)
	quotedBefore = lazyregexp.New(`['"‘“]([^'"’”\\]+)['"’”]:? *$`)
	plainBefore  = lazyregexp.New(`[\s:]([^\s:'"]+): *$`)
)

// offer returns the path to allow if a server was kept from a path: the path itself or the
// closest existing parent folder, with a remark. It returns "" and the reason if nothing can be
// offered; it never offers a folder that contains yaya's own.
func (b *Bridge) offer(path string) (at, about string) {
	at = sandbox.Nearest(path)
	to := sandbox.Real(at)
	err := sandbox.MayGive(to, append(slices.Clone(b.cfg.Sandboxes.Own), b.cfg.Sandboxes.Cache)...)
	switch {
	case at == path && err != nil:
		return "", err.Error()
	case err != nil || at == "/":
		return "", "it does not exist; create it, then allow it"
	case sandbox.Credentials(b.cfg.Home, to):
		return at, ", which holds credentials"
	}
	return at, ""
}
