package mcpbridge

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// mustBound are the needs without which a server never starts, unless it is guarded: the user's
// approval relies on them.
const mustBound = sandbox.NeedHidden | sandbox.NeedStrict | sandbox.NeedWrites | sandbox.NeedNetwork | sandbox.NeedKernel

// Needs returns the needs without which a yaya with this environment, and with or without an
// endpoint for servers, does not start a sandboxed server. A guarded server has none.
func Needs(x servers.Server, env func(string) (string, bool), endpoint bool) sandbox.Need {
	switch {
	case x.SandboxProfile() != servers.SandboxServer:
		return 0
	case len(x.SandboxHosts()) > 0, len(servers.RegistryHosts(env)) > 0, endpoint && callsOthers(x):
		return mustBound | sandbox.NeedHosts
	}
	return mustBound
}

// enter creates the sandbox of one process of a server s; x is s with its variables expanded.
// It opens the paths that the server may read and write, and records in hidden the paths of its
// entry that the sandbox hides. It returns nil if there are no sandboxes; servers of a folder
// do not start then.
func (b *Bridge) enter(s, x servers.Server, hidden *unseen, tell func(upstream.Denial)) (*sandbox.Run, error) {
	switch {
	case b.cfg.Sandboxes != nil:
	case x.Project:
		return nil, errors.New("a folder brings it, and there is no sandbox to run it in")
	default:
		return nil, nil //nolint:nilnil // a test without sandboxes
	}
	profile := profileOf(x)
	if profile == servers.SandboxOff {
		set := b.cfg.Sandboxes.Settings()
		if set.Mode == sandbox.Require {
			return nil, &feature.RefusedError{Err: errors.New(`it runs in no sandbox, and sandbox.mode is "require"; bound it with "sandbox" in its entry`)}
		}
		if err := set.Outside(); err != nil {
			return nil, &feature.RefusedError{Err: err}
		}
		return (&sandbox.Box{Backend: sandbox.None}).Enter(sandbox.Policy{Profile: profile, HostWrites: true, Net: sandbox.Net{Mode: sandbox.Host}, Unix: true})
	}
	policy, err := b.cfg.Sandboxes.Policy(profile, cacheOf(x))
	if err != nil {
		return nil, err
	}
	if !policy.Strict {
		return b.start(x.Name, policy)
	}
	policy.Net.Allow = append(x.SandboxHosts(), servers.RegistryHosts(b.cfg.Env)...)
	policy.Net.Denied = func(d sandbox.Denial) { tell(hostDenied(x.Name, d)) }
	policy.Net.Unreached = func(host string, port int, why string) { tell(hostUnreached(x.Name, host, port, why)) }
	policy.Hide = append(policy.Hide, b.cfg.Sandboxes.Cache) // those of other servers
	policy.Require = Needs(x, b.cfg.Env, b.face.Endpoint != nil)
	if callsOthers(x) && b.face.Endpoint != nil {
		policy.Endpoints = []sandbox.Endpoint{{Addr: servers.SandboxMCP, Handler: b.face.Endpoint(x.Name)}}
	}
	at, err := b.places(s, x)
	if err != nil {
		return nil, err
	}
	if policy.Read, err = servers.OpenPlaces("read", at.Read); err != nil {
		return nil, err
	}
	if policy.Write, err = servers.OpenPlaces("write", at.Write); err != nil {
		return nil, errors.Join(err, sandbox.Close(policy.Read))
	}
	if policy.Protect, err = sandbox.Protected(policy.Write); err != nil {
		return nil, errors.Join(err, sandbox.Close(policy.Read), sandbox.Close(policy.Write))
	}
	policy.OwnParts = x.OwnParts
	if x.Project { // its approval named these paths
		policy.Behind = append([]string{}, at.Program...)
	}
	policy.Runtimes = b.runtimes()
	b.watch(s, x, &policy, hidden, tell)
	return b.start(x.Name, policy)
}

// profileOf returns the profile of a server's process.
func profileOf(x servers.Server) string {
	if p := x.SandboxProfile(); p != servers.SandboxServer || x.Sandbox == nil || !x.Sandbox.Browser {
		return p
	}
	return "browser"
}

// callsOthers reports whether a server may call tools of others.
func callsOthers(x servers.Server) bool { return x.Sandbox != nil && x.Sandbox.MCP }

// Here tells which parts of a server's sandbox would be enforced on this machine, with the
// current settings.
func Here(boxes *sandbox.Sandboxes, x servers.Server, env func(string) (string, bool)) servers.Here {
	profile := profileOf(x)
	if profile == "" || profile == servers.SandboxOff || boxes == nil {
		return servers.Here{} // its description claims nothing
	}
	p, err := sandbox.Profile(profile)
	if err != nil {
		return servers.Here{Refused: err.Error()}
	}
	if p.Strict {
		p.Net.Allow = append(x.SandboxHosts(), servers.RegistryHosts(env)...)
		p.Require = Needs(x, env, true)
	}
	return servers.NewHere(boxes, p)
}

// start creates the sandbox of a server's process. If it is weaker than the profile wants,
// start logs that, once for each kind of weakness. The audit log does not record it: it is for
// people's decisions, and processes start too often.
func (b *Bridge) start(server string, policy sandbox.Policy) (*sandbox.Run, error) {
	wants := policy.Wants()
	run, err := b.cfg.Sandboxes.Enter(policy)
	if _, refused := errors.AsType[*sandbox.RefusedError](err); refused {
		return nil, &feature.RefusedError{Err: err}
	}
	if err != nil {
		return nil, err
	}
	e := run.Enforced
	lacks := wants &^ e.Has
	if lacks == 0 {
		b.weaker.Delete(server)
		return run, nil
	}
	now := fmt.Sprintf("%s %s %s", e.Profile, e.Backend, lacks)
	if was, known := b.weaker.Swap(server, now); !known || was != now {
		b.cfg.Log.Warn().Str("server", server).Str("profile", e.Profile).Str("backend", e.Backend).Str("weaker", lacks.Lacking()).Msg("the server starts in a weaker sandbox than its profile wants (see: yaya sandbox)")
	}
	return run, nil
}

// places returns the paths that a bounded server reads and writes: the approved ones for a
// server that a folder brings, those in its entry for the user's own.
func (b *Bridge) places(s, x servers.Server) (servers.Places, error) {
	if x.Project {
		return b.cfg.MayStart(s)
	}
	x.Args = slices.Clone(x.Args)
	for i, arg := range s.Args { // as they are shown
		if servers.NamesSecret(arg) {
			x.Args[i] = arg
		}
	}
	return x.Places(servers.Scope{Home: b.cfg.Home}).Named(), nil
}

// runtimes opens the files of a bounded server's runtime outside the system: the folders of
// yaya's own PATH, each with the tree of its version manager. It omits folders that are hidden
// or that contain hidden ones.
func (b *Bridge) runtimes() []sandbox.Path {
	search, _ := b.cfg.Env("PATH")
	var all []sandbox.Path
	for _, name := range sandbox.RuntimesOf(b.cfg.Home, search) {
		if p, err := sandbox.Open(name); err == nil { // otherwise there is nothing to show
			all = append(all, p)
		}
	}
	return all
}

// cacheOf names the folder of a server's caches, which no other server shares. Servers of the
// same name in different files are different servers.
func cacheOf(x servers.Server) string {
	sum := sha256.Sum256([]byte(x.Name + "\x00" + x.File))
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' {
			return r
		}
		return '_'
	}, x.Name)
	if runes := []rune(name); len(runes) > 32 {
		name = string(runes[:32])
	}
	return "server-" + name + "-" + hex.EncodeToString(sum[:8])
}

// inSandbox adapts a server's entry for the process: it works in its folder, or in the root if
// the sandbox hides yaya's own folder.
func inSandbox(x servers.Server) servers.Server {
	x.Dir = x.Folder()
	if x.SandboxProfile() == servers.SandboxServer && x.Dir == "" {
		x.Dir = "/"
	}
	return x
}
