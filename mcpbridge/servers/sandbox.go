package servers

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/members"
	"github.com/yaya-ai/yaya/internal/sandbox"
)

// Sandbox profiles of servers.
const (
	// SandboxGuarded protects only yaya's own files and processes: the profile of servers in
	// the user's own configuration.
	SandboxGuarded = "guarded"
	// SandboxServer limits a server to the named resources: the profile of servers that a
	// project brings, and of every entry that has a sandbox without a profile.
	SandboxServer = "server"
	// SandboxOff runs a server with all rights of its user.
	SandboxOff = "off"
)

// Sandbox says what a server's process may do. The lists apply only to [SandboxServer]; the
// other profiles do not limit such resources.
type Sandbox struct {
	Profile string   `json:"profile,omitempty"`
	Read    []string `json:"read,omitempty"`
	Write   []string `json:"write,omitempty"`
	Hosts   []string `json:"hosts,omitempty"`
	// Env names the variables of yaya's environment that the process gets.
	Env []string `json:"env,omitempty"`
	// Browser lets it create user namespaces, which browsers need for their own sandbox.
	Browser bool `json:"browser,omitempty"`
	// MCP lets it call tools of other servers through yaya, at [SandboxMCP].
	MCP bool `json:"mcp,omitempty"`
}

// SandboxMCP is the address of yaya for a server in [SandboxServer] that may call tools of
// other servers. Nothing else is reachable there.
const SandboxMCP = "127.0.0.1:8787"

// SandboxProfile returns the profile that the server runs in, "" for a remote server. A server
// in the user's own configuration works without a sandbox in its entry.
func (s Server) SandboxProfile() string {
	switch {
	case s.Transport != Stdio:
		return ""
	case s.Sandbox != nil && s.Sandbox.Profile != "":
		return s.Sandbox.Profile
	case s.Sandbox != nil || s.Project:
		return SandboxServer
	case switchesUsers(s.Command):
		return SandboxOff
	}
	return SandboxGuarded
}

// otherUsers are commands that switch users, or map users for their own containers: they cannot
// work in a sandbox, where no program gains rights.
var otherUsers = []string{"sudo", "doas", "su", "runuser", "pkexec", "podman", "buildah", "flatpak", "snap", "toolbox", "distrobox", "firejail"}

// systemPrograms are where those are: a file of that name elsewhere is anybody's.
var systemPrograms = []string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/snap/bin", "/run/wrappers/bin", "/run/current-system/sw/bin", "/opt/homebrew/bin"}

func switchesUsers(command string) bool {
	dir, name := filepath.Split(command)
	return slices.Contains(otherUsers, name) && (dir == "" || slices.Contains(systemPrograms, filepath.Clean(dir)))
}

// sandboxKeys are the members of an entry's sandbox.
var sandboxKeys = []string{"profile", "read", "write", "hosts", "env", "browser", "mcp"}

// sandbox reads yaya's own form. Other clients use the name for something else: in their files
// and a project's, which they read, too, an object without a member of yaya's is left out. In
// their files, profile off is left out, too: yaya's own file can say it, and a project's, which
// is shown before it counts.
func (e *entry) sandbox(file string) *Sandbox {
	v, key := e.get("sandbox")
	if key == "" || v == nil {
		return nil
	}
	obj, ok := v.(map[string]any)
	profile := SandboxGuarded
	if e.project {
		profile = SandboxServer
	}
	if e.format != FormatYaya && (!ok || len(obj) > 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(obj)), func(k string) bool { return slices.Contains(sandboxKeys, k) })) {
		e.warn("its sandbox is not in yaya's form and is left out: it runs in profile %s", profile)
		return nil
	}
	if !ok {
		e.bad(key, "an object", v)
		return nil
	}
	inner := &entry{obj: obj, used: map[string]bool{}, format: e.format}
	out := &Sandbox{Profile: inner.str("profile"), Read: inner.list("read"), Write: inner.list("write"), Hosts: inner.list("hosts"), Env: inner.list("env")}
	out.Browser, _ = inner.flag("browser")
	out.MCP, _ = inner.flag("mcp")
	for _, k := range slices.Sorted(maps.Keys(obj)) {
		if !inner.used[k] {
			inner.errs = append(inner.errs, fmt.Errorf("unknown key %q%s", k, members.Known(k, new(Sandbox))))
		}
	}
	for _, err := range inner.errs {
		e.errs = append(e.errs, fmt.Errorf("sandbox: %w", err))
	}
	if out.Profile == SandboxOff && e.format != FormatYaya && !e.project {
		e.warn("its sandbox has profile %s, which counts in yaya's own file alone (yaya mcp add): it runs in profile %s", SandboxOff, profile)
		return nil
	}
	if e.project { // a checkout can be anywhere
		for _, list := range [][]string{out.Read, out.Write} {
			for i, p := range list {
				if p != "" && !Anchored(p) {
					list[i] = filepath.Join(filepath.Dir(file), p)
				}
			}
		}
	}
	return out
}

// Anchored reports whether a path does not depend on a working directory.
func Anchored(p string) bool {
	return filepath.IsAbs(p) || p == "~" || strings.HasPrefix(p, "~/") || strings.HasPrefix(p, "${")
}

// checkSandbox returns an error if the server's sandbox is unusable.
func (s Server) checkSandbox() error {
	b := s.Sandbox
	switch {
	case b == nil:
		return nil
	case s.Transport != Stdio:
		return errors.New(`it has a "url" and a "sandbox", which is for a command; leave the sandbox out`)
	}
	lists := len(b.Read)+len(b.Write)+len(b.Hosts)+len(b.Env) > 0
	switch b.Profile {
	case "", SandboxServer:
	case SandboxGuarded:
		if lists || b.Browser || b.MCP {
			return fmt.Errorf(`sandbox: profile %q can read and write all files that you can and reach every host, so read, write, hosts, env, browser and mcp have no effect; omit them, or use profile %q`, b.Profile, SandboxServer)
		}
	case SandboxOff:
		if lists || b.Browser || b.MCP {
			return fmt.Errorf(`sandbox: profile %q has no limits, so read, write, hosts, env, browser and mcp have no effect; omit them, or use profile %q`, b.Profile, SandboxServer)
		}
	default:
		return fmt.Errorf("sandbox: profile %q is not one of %s, %s, %s", b.Profile, SandboxGuarded, SandboxServer, SandboxOff)
	}
	for _, p := range slices.Concat(b.Read, b.Write) {
		if !Anchored(p) || strings.ContainsRune(p, 0) {
			return fmt.Errorf("sandbox: path %q is not absolute; begin it with /, ~/ or ${NAME}", p)
		}
		if NamesSecret(p) {
			return fmt.Errorf("sandbox: path %q contains a secret, but paths are shown; write the path itself", p)
		}
		if filepath.Clean(p) == "/" {
			return fmt.Errorf("sandbox: path %w", sandbox.NotWhole(p))
		}
		if filepath.IsAbs(p) {
			if err := sandbox.CheckPath(p); err != nil {
				return fmt.Errorf("sandbox: %w", err)
			}
		}
	}
	for _, h := range b.Hosts {
		if strings.Contains(h, "${") {
			continue
		}
		if err := sandbox.CheckHost(h); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
	}
	if b.MCP && sandbox.CheckHosts(b.Hosts, []string{SandboxMCP}) != nil {
		return fmt.Errorf(`sandbox: with "mcp", %s is yaya's endpoint in the sandbox and not a host; remove it from hosts`, SandboxMCP)
	}
	for _, n := range b.Env {
		if err := CheckEnvName(n); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
	}
	return nil
}

// expandSandbox returns a sandbox with variables and, given a home folder, ~ resolved.
func expandSandbox(b *Sandbox, expand func(string) string, home string) *Sandbox {
	if b == nil {
		return nil
	}
	out := *b
	paths := func(in []string) []string {
		all := slices.Clone(in)
		for i, p := range all {
			if p = expand(p); home != "" && (p == "~" || strings.HasPrefix(p, "~/")) {
				p = filepath.Join(home, p[1:])
			}
			all[i] = p
		}
		return all
	}
	out.Read, out.Write, out.Hosts, out.Env = paths(b.Read), paths(b.Write), slices.Clone(b.Hosts), slices.Clone(b.Env)
	for i := range out.Hosts {
		out.Hosts[i] = expand(out.Hosts[i])
	}
	return &out
}

// Folder is the absolute working directory of the server's process: for a project's server, its
// folder unless the entry names another one. "" is yaya's own working directory.
func (s Server) Folder() string {
	if !s.Project || filepath.IsAbs(s.Dir) {
		return s.Dir
	}
	return filepath.Join(filepath.Dir(s.File), s.Dir)
}

// Reads are the paths that the server reads in [SandboxServer], in addition to its program: the
// folder that brings it, its working directory, and the named ones. A server that works in / does
// not read the whole file system.
func (s Server) Reads() []string {
	var all []string
	if s.Project {
		all = append(all, filepath.Dir(s.File))
	}
	if dir := s.Folder(); dir != "" && filepath.Clean(dir) != "/" && (len(all) == 0 || dir != all[0] && !strings.HasPrefix(dir, all[0]+"/")) {
		all = append(all, dir)
	}
	if s.Sandbox != nil {
		all = append(all, s.Sandbox.Read...)
	}
	return all
}

// SandboxHosts are the hosts that the server reaches in [SandboxServer]: the named ones, and
// the registry that its command downloads from.
func (s Server) SandboxHosts() []string {
	var all []string
	if s.Sandbox != nil {
		all = slices.Clone(s.Sandbox.Hosts)
	}
	for _, h := range sandbox.RegistryOf(s.Command) {
		if !slices.Contains(all, h) {
			all = append(all, h)
		}
	}
	return all
}

// InSandbox describes literally what the server's process may do, for the person who approves
// it; "" for a remote server. The places are those of [Server.Places]. [Here] tells which parts
// are enforced.
func (s Server) InSandbox(at Places) string {
	switch s.SandboxProfile() {
	case "":
		return ""
	case SandboxGuarded:
		return "in sandbox profile guarded: reads and writes all files that you can, and reaches every host; kept from yaya alone"
	case SandboxOff:
		return "outside the sandbox, with all your rights, yaya's own files included"
	}
	b := Sandbox{}
	if s.Sandbox != nil {
		b = *s.Sandbox
	}
	out := "in sandbox profile server: reads the files of the system, and the programs of your PATH with their installations, "
	if len(at.Read) == 0 {
		out += "and no other file"
	} else {
		out += "and " + at.list(at.Read)
	}
	if behind := slices.DeleteFunc(slices.Clone(at.Program), func(name string) bool { return name == s.Command }); len(behind) > 0 { // the file itself is named
		out += "; reads what its program is installed with: " + shownList(behind)
	}
	if len(at.Write) == 0 {
		out += "; writes none of your files"
	} else {
		out += "; writes " + at.list(at.Write)
	}
	if hosts := s.SandboxHosts(); len(hosts) == 0 {
		out += "; reaches no host"
	} else {
		out += "; reaches " + shownList(hosts)
	}
	if len(b.Env) > 0 {
		out += "; gets your variables " + shownList(b.Env)
	}
	if b.MCP {
		out += "; asks you to call tools of other servers"
	}
	if b.Browser {
		out += "; may make namespaces, as browsers do"
	}
	return out
}

// Brings describes what a server that a folder brings would run, and where, for the person who
// approves it, with the parts of its sandbox that are not enforced here.
func (s Server) Brings(at Places, here Here) string {
	if in := here.Says(s.InSandbox(at)); in != "" {
		return s.RunsExactly() + ", " + in
	}
	return s.RunsExactly()
}

// RegistryHosts returns the hosts of the registries in yaya's own environment, from which the
// package managers of servers download.
func RegistryHosts(lookup func(string) (string, bool)) []string {
	var all []string
	for _, name := range registries {
		v, _ := lookup(name)
		for word := range strings.FieldsSeq(v) {
			u, err := url.Parse(word)
			if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || sandbox.CheckHost(u.Host) != nil || slices.Contains(all, u.Host) {
				continue
			}
			all = append(all, u.Host)
		}
	}
	return all
}

// Permit returns the server with the user's permits added to its entry, without hosts that the
// entry has in another spelling.
func (s Server) Permit(more Sandbox) Server {
	if s.SandboxProfile() != SandboxServer {
		return s
	}
	b := Sandbox{}
	if s.Sandbox != nil {
		b = *s.Sandbox
	}
	for _, l := range permittable(&b, more) {
		*l.list = slices.Clone(*l.list)
		for _, m := range l.other {
			if !slices.ContainsFunc(*l.list, func(have string) bool { return l.canonical(have) == l.canonical(m) }) {
				*l.list = append(*l.list, m)
			}
		}
	}
	s.Sandbox = &b
	return s
}

// Forbid removes everything that less names from a sandbox, hosts in every spelling. It fails if
// something is not in it.
func (b Sandbox) Forbid(less Sandbox) (Sandbox, error) {
	for _, l := range permittable(&b, less) {
		for _, m := range l.other {
			left := slices.DeleteFunc(slices.Clone(*l.list), func(have string) bool { return l.canonical(have) == l.canonical(m) })
			if len(left) == len(*l.list) {
				return b, fmt.Errorf("--%s %s was not allowed", l.what, m)
			}
			*l.list = left
		}
	}
	return b, nil
}

// permitted is such a list, with that of another sandbox.
type permitted struct {
	what      string
	list      *[]string
	other     []string
	canonical func(string) string
}

// permittable returns the lists of a sandbox that permits change.
func permittable(b *Sandbox, other Sandbox) []permitted {
	asIs := func(s string) string { return s }
	return []permitted{
		{"read", &b.Read, other.Read, asIs}, {"write", &b.Write, other.Write, asIs}, {"host", &b.Hosts, other.Hosts, sandbox.CanonicalHost}, {"env", &b.Env, other.Env, asIs},
	}
}

// Check returns an error if a sandbox is not valid in an entry.
func (b Sandbox) Check() error { return Server{Transport: Stdio, Sandbox: &b}.checkSandbox() }
