package mcpbridge

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// mustBound is what a server is never started without, unless it is guarded: what was
// agreed to says so.
const mustBound = sandbox.NeedHidden | sandbox.NeedStrict | sandbox.NeedWrites | sandbox.NeedNetwork | sandbox.NeedKernel

// enter makes the sandbox of one process of a server s, which is x once its variables are
// expanded. It opens what the server may read and write. It returns nil where there are
// no sandboxes, which no server of a folder is started without.
func (b *Bridge) enter(s, x servers.Server, tell func(upstream.Denial)) (*sandbox.Run, error) {
	switch {
	case b.cfg.Sandboxes != nil:
	case x.Project:
		return nil, errors.New("a folder brought it, and there is no sandbox to run it in")
	default:
		return nil, nil //nolint:nilnil // a test without sandboxes
	}
	profile := x.SandboxProfile()
	switch {
	case profile == servers.SandboxOff:
		set := b.cfg.Sandboxes.Settings()
		if set.Mode == sandbox.Require {
			return nil, errors.New(`it runs in no sandbox, and sandbox.mode is "require"; bound it with "sandbox" in its entry`)
		}
		if err := set.Outside(); err != nil {
			return nil, err
		}
		return (&sandbox.Box{Backend: sandbox.None}).Enter(sandbox.Policy{Profile: profile, HostWrites: true, Net: sandbox.Net{Mode: sandbox.Host}, Unix: true})
	case profile == servers.SandboxServer && x.Sandbox != nil && x.Sandbox.Browser:
		profile = "browser"
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
	policy.Hide = append(policy.Hide, b.cfg.Sandboxes.Cache) // those of others
	policy.Require = mustBound
	if len(policy.Net.Allow) > 0 {
		policy.Require |= sandbox.NeedHosts
	}
	named := servers.Sandbox{}
	if x.Sandbox != nil {
		named = *x.Sandbox
	}
	if named.MCP && b.cfg.Endpoint != nil {
		policy.Endpoints = []sandbox.Endpoint{{Addr: servers.SandboxMCP, Handler: b.cfg.Endpoint(x.Name)}}
		policy.Require |= sandbox.NeedHosts
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
	policy.Runtimes = b.runtimes()
	return b.start(x.Name, policy)
}

// start makes the sandbox of a server's process. A server that starts in a weaker one
// than its profile wants is logged, once for each way in which it is weaker: a process
// starts too often for the audit, which records what people decide.
func (b *Bridge) start(server string, policy sandbox.Policy) (*sandbox.Run, error) {
	wants := policy.Wants()
	run, err := b.cfg.Sandboxes.Enter(policy)
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
		b.cfg.Log.Warn().Str("server", server).Str("profile", e.Profile).Str("backend", e.Backend).Str("weaker", lacks.Lacking()).Msg("the server starts in a weaker sandbox than its profile wants (yaya sandbox says more)")
	}
	return run, nil
}

// places are what a bounded server reads and writes: of one that a folder brings, what was
// agreed to; of the user's own, what its entry names.
func (b *Bridge) places(s, x servers.Server) (servers.Places, error) {
	if x.Project {
		return b.cfg.MayStart(s)
	}
	x.Sandbox = x.Permit(servers.Sandbox{Read: b.program(x)}).Sandbox
	return x.Places(servers.Scope{Home: b.cfg.Home}).Named(), nil
}

// program returns what a bounded server of the user's own configuration reads without
// being told so: the script that its command line names first, with the package that the
// script belongs to. One that a folder brings reads its folder.
func (b *Bridge) program(x servers.Server) []string {
	if x.Project {
		return nil
	}
	for _, arg := range x.Args {
		if strings.HasPrefix(arg, "-") || !strings.ContainsRune(arg, '/') {
			continue
		}
		if !filepath.IsAbs(arg) {
			arg = filepath.Join(x.Folder(), arg)
		}
		if inSystem(arg) {
			return nil // which every sandbox shows
		}
		if info, err := os.Stat(arg); filepath.IsAbs(arg) && err == nil && info.Mode().IsRegular() {
			return []string{packageOf(arg, b.cfg.Home)}
		}
		break
	}
	return nil
}

// runtimes opens what a bounded server's runtime is made of, where it is not one of the
// system's: the folders of yaya's own PATH, each with the tree of the version manager
// that it belongs to. A sandbox shows none that is hidden, or holds what is.
func (b *Bridge) runtimes() []sandbox.Path {
	search, _ := b.cfg.Env("PATH")
	var all []sandbox.Path
	for _, dir := range filepath.SplitList(search) {
		if !filepath.IsAbs(dir) {
			continue
		}
		for _, name := range sandbox.Runtimes(b.cfg.Home, dir) {
			if p, err := sandbox.Open(name); err == nil { // else there is nothing to show
				all = append(all, p)
			}
		}
	}
	return all
}

// packageOf returns the folder of the package that a script belongs to: that of its
// dependencies if it is one of them, or the next above it that has the file of a
// package. Without one it is the script alone.
func packageOf(script, home string) string {
	if top, _, found := strings.Cut(script, "/node_modules/"); found {
		return top + "/node_modules"
	}
	for dir := filepath.Dir(script); dir != "/" && dir != home && dir != "."; dir = filepath.Dir(dir) {
		for _, name := range []string{"package.json", "pyproject.toml", "setup.py", "go.mod"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				return dir
			}
		}
	}
	return script
}

// cacheOf names the folder of a server's caches, which no other server has: of another
// file, a server of the same name is another one.
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

// inSandbox changes a server's entry for the process: it works in its folder, and in a
// sandbox that hides yaya's own folder, in the root.
func inSandbox(x servers.Server) servers.Server {
	x.Dir = x.Folder()
	if x.SandboxProfile() == servers.SandboxServer && x.Dir == "" {
		x.Dir = "/"
	}
	return x
}
