package manage

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

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/mcpbridge"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Bounds of the permits of a folder's servers.
const (
	maxPermits    = 256
	maxPermitFile = 1 << 20
)

// Permits keep what the user allows servers that folders bring: their files are not the
// user's to change. A permit holds for the present entry and its present program; with another
// one, it is another server. Methods are safe for concurrent use.
type Permits struct {
	path string
	mu   sync.Mutex
	seen Digests
}

// permit holds the rights of one server.
type permit struct {
	Server string `json:"server"`
	File   string `json:"file"`
	Entry  string `json:"entry"` // its digest, with its files'
	servers.Sandbox
}

// NewPermits returns the permits stored in a data folder.
func NewPermits(data string) *Permits { return &Permits{path: filepath.Join(data, "permits.json")} }

// entryDigest is the digest of a server's entry and of the files of its folder that the
// entry names: another program is another server.
func (p *Permits) entryDigest(s servers.Server) (string, error) {
	w, err := (*workspace.Guard)(nil).Open(filepath.Dir(s.File))
	if err != nil {
		return "", err
	}
	defer func() { _ = w.Close() }()
	left := int64(maxBroughtBytes)
	return p.seen.server(w, s, &left)
}

// Forgetting returns what next returns of a change of a folder, and forgets what the
// servers of a folder were allowed before its trust is revoked.
func (p *Permits) Forgetting(next func(event, by string, r folder.Record) error) func(event, by string, r folder.Record) error {
	return func(event, by string, r folder.Record) error {
		if err := next(event, by, r); err != nil || event != folder.EventRevoked {
			return err
		}
		return p.Forget(r.Folder)
	}
}

// Forget removes the permits of the servers of a folder.
func (p *Permits) Forget(dir string) error {
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

func (p *Permits) write(list []permit) error {
	raw, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Replace(p.path, append(raw, '\n'))
}

// all returns the permits; the caller holds mu.
func (p *Permits) all() ([]permit, error) {
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
		return nil, fmt.Errorf("the permits of servers in %s: %w; correct or remove the file", p.path, err)
	}
	return list, nil
}

// Of returns the permit of a server that a folder brings.
func (p *Permits) Of(s servers.Server) (servers.Sandbox, error) {
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

// set replaces the permit of a server. The permits of its former entries are deleted.
func (p *Permits) set(s servers.Server, b servers.Sandbox) error {
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

// PermitPlaces are the paths of a permit, which were resolved when they were allowed.
func PermitPlaces(s servers.Server, more servers.Sandbox) servers.Places {
	s.Project, s.Dir, s.Args, s.Sandbox = false, "", nil, &servers.Sandbox{Read: more.Read, Write: more.Write}
	return s.Places(inFolder(filepath.Dir(s.File))).Named()
}

// Items are the servers of a folder that are allowed more than their entries say, as the
// question about the folder shows them.
func (p *Permits) Items(w *workspace.Workspace, boxes *sandbox.Sandboxes) []folder.Item {
	cfg, err := projectServers(w)
	if err != nil {
		return nil // nothing of it starts
	}
	var out []folder.Item
	for _, s := range cfg.Servers {
		b, err := p.Of(s)
		if what := s.Permit(b).InSandbox(s.Places(inFolder(w.Dir())).With(PermitPlaces(s, b))); err == nil && what != s.InSandbox(s.Places(inFolder(w.Dir()))) {
			here := mcpbridge.Here(boxes, s.Permit(b), os.LookupEnv)
			out = append(out, folder.Item{Kind: folder.Server, Name: servers.Shown(s.Name), Runs: here.Says(what)})
		}
	}
	return out
}

// permitted returns a server with its user's permits.
func (s *Manager) permitted(x servers.Server) servers.Server {
	b, err := s.cfg.Permits.Of(x)
	if err != nil {
		s.cfg.Log.Warn().Err(err).Str("server", x.Name).Msg("a server gets only the access in its entry")
	}
	return x.Permit(b)
}

// Allow prepares to give a bounded server more access, or less with remove.
func (s *Manager) Allow(name string, asked servers.Sandbox, remove bool) (Prepared, error) {
	s.mu.Lock()
	now, known := s.list[name]
	var err error
	if !known {
		err = s.unknown(name)
	}
	s.mu.Unlock()
	if err != nil {
		return Prepared{}, err
	}
	if err := asked.Check(); err != nil {
		return Prepared{}, refused("%v", err)
	}
	asked.Hosts = slices.Clone(asked.Hosts)
	for i, host := range asked.Hosts {
		asked.Hosts[i] = sandbox.CanonicalHost(host)
	}
	if !remove {
		if err := sandbox.CheckHosts(asked.Hosts, s.listens()); err != nil {
			return Prepared{}, refused("%v", err)
		}
	}
	if profile := now.SandboxProfile(); profile != servers.SandboxServer {
		if here := mcpbridge.Here(s.cfg.Sandboxes, now, os.LookupEnv); here.Weaker != "" {
			return Prepared{}, refused("server %q needs no permit: %s", name, here.Weaker)
		}
		return Prepared{}, refused("server %q needs no permit: it is %s", name, cmp.Or(now.InSandbox(servers.Places{}), "not a program of this machine"))
	}
	if !remove {
		if asked, err = s.settled(now, asked); err != nil {
			return Prepared{}, refused("%v", err)
		}
	}
	if s.cfg.Own && !now.Project {
		entry := servers.Sandbox{}
		if now.Sandbox != nil {
			entry = *now.Sandbox
		}
		if !remove { // what it has is not kept twice
			asked.Read, asked.Write = s.kept(now, entry.Read, asked.Read), s.kept(now, entry.Write, asked.Write)
		}
		wanted := now.Permit(asked)
		if remove {
			asked.Read, asked.Write = s.kept(now, entry.Read, asked.Read), s.kept(now, entry.Write, asked.Write)
			less, err := entry.Forbid(asked)
			if err != nil {
				return Prepared{}, refused("server %q: %v", name, err)
			}
			wanted.Sandbox = &less
		}
		raw, err := json.Marshal(wanted)
		if err != nil {
			return Prepared{}, err
		}
		return s.Prepare(name, raw, Revision(now))
	}
	if !now.Project {
		return Prepared{}, refused("the server %q comes from a file that --mcp-config names: edit %s", name, now.File)
	}
	was, err := s.cfg.Permits.Of(now)
	if err != nil {
		return Prepared{}, refused("%v", err)
	}
	if !remove {
		asked.Read, asked.Write = s.kept(now, was.Read, asked.Read), s.kept(now, was.Write, asked.Write)
	}
	own := now
	own.Sandbox = nil // the permits alone
	will := *own.Permit(was).Permit(asked).Sandbox
	if remove {
		asked.Read, asked.Write = s.kept(now, was.Read, asked.Read), s.kept(now, was.Write, asked.Write)
		if will, err = was.Forbid(asked); err != nil {
			return Prepared{}, refused("server %q: %v (what its own file names is not yours to remove: revoke its folder)", name, err)
		}
	}
	after := now.Permit(will)
	masked, err := after.Masked()
	if err != nil {
		return Prepared{}, err
	}
	return Prepared{Server: name, Runs: after.Runs() + ", " + s.inSandbox(after), Config: masked, Apply: s.applyPermit(now, was, will)}, nil
}

// applyPermit returns what gives a folder's server its permits, and starts it again.
func (s *Manager) applyPermit(now servers.Server, was, will servers.Sandbox) func(context.Context) error {
	return func(ctx context.Context) error {
		s.changing.Lock()
		defer s.changing.Unlock()
		s.mu.Lock()
		same := Revision(s.list[now.Name]) == Revision(now)
		s.mu.Unlock()
		is, err := s.cfg.Permits.Of(now)
		if err != nil {
			return refused("%v", err)
		}
		if !same || !reflect.DeepEqual(is, was) {
			return &told{ErrStale, fmt.Sprintf("the server %q was changed since this was proposed: try again", now.Name)}
		}
		if err := s.cfg.Permits.set(now, will); err != nil {
			return refused("%v", err)
		}
		if !now.Disabled {
			s.run(ctx, now)
		}
		return nil
	}
}
