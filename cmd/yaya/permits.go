package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Bounds of what is allowed to a folder's servers.
const (
	maxPermits    = 256
	maxPermitFile = 1 << 20
)

// permits keep what the user allows servers that folders bring: their files are not the
// user's to change. A permit holds for an entry and its program as they are now; another
// one is another server. Methods are safe for concurrent use.
type permits struct {
	path string
	mu   sync.Mutex
	seen digests
}

// permit is what one server may do.
type permit struct {
	Server string `json:"server"`
	File   string `json:"file"`
	Entry  string `json:"entry"` // its digest, with its files'
	servers.Sandbox
}

func newPermits(data string) *permits { return &permits{path: filepath.Join(data, "permits.json")} }

// entryDigest is the digest of a server's entry and of the files of its folder that the
// entry names: another program is another server.
func (p *permits) entryDigest(s servers.Server) (string, error) {
	w, err := (*workspace.Guard)(nil).Open(filepath.Dir(s.File))
	if err != nil {
		return "", err
	}
	defer func() { _ = w.Close() }()
	left := int64(maxBroughtBytes)
	return p.seen.server(w, s, &left)
}

// forgetting returns what next returns of a change of a folder, and forgets what the
// servers of a folder were allowed before its trust is revoked.
func (p *permits) forgetting(next func(event, by string, r folder.Record) error) func(event, by string, r folder.Record) error {
	return func(event, by string, r folder.Record) error {
		if err := next(event, by, r); err != nil || event != folder.EventRevoked {
			return err
		}
		return p.forget(r.Folder)
	}
}

// forget removes what the servers of a folder are allowed.
func (p *permits) forget(dir string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	list, err := p.all()
	if err != nil {
		return err
	}
	kept := slices.DeleteFunc(slices.Clone(list), func(x permit) bool { return filepath.Dir(x.File) == dir })
	if len(kept) == len(list) {
		return nil
	}
	return p.write(kept)
}

func (p *permits) write(list []permit) error {
	raw, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Replace(p.path, append(raw, '\n'))
}

// all returns the permits; mu is held.
func (p *permits) all() ([]permit, error) {
	info, err := os.Stat(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && info.Size() > maxPermitFile {
		err = fmt.Errorf("%d bytes, the limit is %d", info.Size(), maxPermitFile)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(p.path) //nolint:forbidigo // bounded above, and yaya's own
	}
	var list []permit
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("what servers are allowed, %s: %w; correct or remove the file", p.path, err)
	}
	return list, nil
}

// of returns what a server that a folder brings is allowed.
func (p *permits) of(s servers.Server) (servers.Sandbox, error) {
	if !s.Project {
		return servers.Sandbox{}, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	list, err := p.all()
	list = slices.DeleteFunc(list, func(x permit) bool { return x.Server != s.Name || x.File != s.File })
	if err != nil || len(list) == 0 {
		return servers.Sandbox{}, err
	}
	entry, err := p.entryDigest(s)
	if err != nil {
		return servers.Sandbox{}, err
	}
	for _, x := range list {
		if x.Entry == entry {
			return x.Sandbox, nil
		}
	}
	return servers.Sandbox{}, nil
}

// set replaces what a server is allowed. What was allowed to its former entries is
// forgotten.
func (p *permits) set(s servers.Server, b servers.Sandbox) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	list, err := p.all()
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(x permit) bool { return x.Server == s.Name && x.File == s.File })
	if len(b.Read)+len(b.Write)+len(b.Hosts)+len(b.Env) > 0 {
		entry, err := p.entryDigest(s)
		if err != nil {
			return err
		}
		list = append(list, permit{s.Name, s.File, entry, b})
	}
	if len(list) > maxPermits {
		return fmt.Errorf("%d servers of folders are allowed something already; take it from one first (yaya mcp allow NAME --remove)", maxPermits)
	}
	return p.write(list)
}

// permitPlaces are the paths of a permit, which were resolved when they were allowed.
func permitPlaces(s servers.Server, more servers.Sandbox) servers.Places {
	s.Project, s.Dir, s.Sandbox = false, "", &servers.Sandbox{Read: more.Read, Write: more.Write}
	return s.Places(inFolder(filepath.Dir(s.File))).Named()
}

// permitted is a server with what its user allows it.
func (a *app) permitted(s servers.Server) servers.Server {
	b, err := a.permits.of(s)
	if err != nil {
		a.log.Warn().Err(err).Str("server", s.Name).Msg("a server gets no more than its entry says")
	}
	return s.Permit(b)
}

// Allow implements [admin.Servers].
func (s *serverAdmin) Allow(name string, what admin.ServerPermit, remove bool) (admin.Prepared, error) {
	s.mu.Lock()
	now, known := s.list[name]
	var err error
	if !known {
		err = s.unknown(name)
	}
	s.mu.Unlock()
	if err != nil {
		return admin.Prepared{}, err
	}
	asked := servers.Sandbox{Read: what.Read, Write: what.Write, Hosts: what.Hosts, Env: what.Env}
	if err := asked.Check(); err != nil {
		return admin.Prepared{}, refused("%v", err)
	}
	if !remove {
		if err := s.a.reachable(what.Hosts); err != nil {
			return admin.Prepared{}, refused("%v", err)
		}
	}
	if profile := now.SandboxProfile(); profile != servers.SandboxServer {
		return admin.Prepared{}, refused("server %q needs no permit: it is %s", name, cmp.Or(s.inSandbox(now), "not a program of this machine"))
	}
	if !remove {
		if asked, err = s.settled(now, asked); err != nil {
			return admin.Prepared{}, refused("%v", err)
		}
	}
	if s.own && !now.Project {
		entry := servers.Sandbox{}
		if now.Sandbox != nil {
			entry = *now.Sandbox
		}
		wanted := now.Permit(asked)
		if remove {
			asked.Read, asked.Write = s.kept(now, entry.Read, asked.Read), s.kept(now, entry.Write, asked.Write)
			less, err := entry.Forbid(asked)
			if err != nil {
				return admin.Prepared{}, refused("server %q: %v", name, err)
			}
			wanted.Sandbox = &less
		}
		raw, err := json.Marshal(wanted)
		if err != nil {
			return admin.Prepared{}, err
		}
		return s.Prepare(name, raw, revision(now))
	}
	if !now.Project {
		return admin.Prepared{}, refused("the server %q comes from a file that --mcp-config names: edit %s", name, now.File)
	}
	was, err := s.a.permits.of(now)
	if err != nil {
		return admin.Prepared{}, refused("%v", err)
	}
	own := now
	own.Sandbox = nil // the permits alone
	will := *own.Permit(was).Permit(asked).Sandbox
	if remove {
		asked.Read, asked.Write = s.kept(now, was.Read, asked.Read), s.kept(now, was.Write, asked.Write)
		if will, err = was.Forbid(asked); err != nil {
			return admin.Prepared{}, refused("server %q: %v (what its own file names is not yours to remove: revoke its folder)", name, err)
		}
	}
	after := now.Permit(will)
	masked, err := after.Masked()
	if err != nil {
		return admin.Prepared{}, err
	}
	return admin.Prepared{Server: name, Runs: after.Runs() + ", " + s.inSandbox(after), Config: masked, Apply: s.applyPermit(now, was, will)}, nil
}

// applyPermit returns what gives a folder's server its permits, and starts it again.
func (s *serverAdmin) applyPermit(now servers.Server, was, will servers.Sandbox) func(context.Context) error {
	return func(ctx context.Context) error {
		s.changing.Lock()
		defer s.changing.Unlock()
		s.mu.Lock()
		same := revision(s.list[now.Name]) == revision(now)
		s.mu.Unlock()
		is, err := s.a.permits.of(now)
		if err != nil {
			return refused("%v", err)
		}
		if !same || !reflect.DeepEqual(is, was) {
			return &told{admin.ErrStale, fmt.Sprintf("the server %q was changed since this was proposed: try again", now.Name)}
		}
		if err := s.a.permits.set(now, will); err != nil {
			return refused("%v", err)
		}
		if !now.Disabled {
			s.run(ctx, now)
		}
		return nil
	}
}
