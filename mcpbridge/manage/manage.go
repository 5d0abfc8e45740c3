package manage

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/trust"
)

// Config assembles a [Manager].
type Config struct {
	// File is yaya's own file of servers. The servers come from it, and from the project in
	// the folder Here, if Own is set; else from files that were named.
	File string
	Own  bool
	Here string
	Home string // of the user
	// Data is the data folder, and Listens are the addresses that this yaya listens on, to
	// reject servers that lead back to it.
	Data    string
	Listens func() []string
	// Ungiven returns the folders and files that no server may get.
	Ungiven func() (folders, files []string)

	Folders   *folder.Store
	Trust     *trust.Store
	Permits   *Permits
	Sandboxes *sandbox.Sandboxes
	// Secret returns the value of a secret.
	Secret func(name string) (string, error)

	// Bridge runs the servers, and Host reports their state; both are nil if none runs.
	Bridge Bridge
	Host   *feature.Host
	// Changed is called when servers and their tools have changed; approvals says that
	// other changes wait for approval. It may be nil.
	Changed func(approvals bool)
	Log     zerolog.Logger
}

// Bridge is the part of [mcpbridge.Bridge] that a manager works with.
type Bridge interface {
	// Add starts a server, and returns warnings about it; Remove stops one.
	Add(ctx context.Context, s servers.Server) []string
	Remove(name string) bool
	// Invalid notes a server that cannot be used, and InvalidServers lists those.
	Invalid(inv servers.Invalid)
	InvalidServers() []servers.Invalid
	// Loaded reports whether servers run at all, and Runs whether one runs as it is.
	Loaded() bool
	Runs(s servers.Server) bool
}

// Manager manages the configured servers: in yaya's own file, and in the bridge that runs them.
// Without a bridge, it works only on the file. Its methods are safe for concurrent use. Errors
// whose text is for the caller wrap [ErrUnknown], [ErrRefused] or [ErrStale].
type Manager struct {
	cfg Config

	// changing is held while a server is changed, which may wait for one to stop; mu
	// guards what follows, and is held for a moment.
	changing sync.Mutex
	mu       sync.Mutex
	list     map[string]servers.Server // configured and readable
	bad      []servers.Invalid         // configured and not
	wait     []Pending                 // of a folder that is not trusted

	brought map[string]string // what the folder's servers were when they were started
	work    sync.WaitGroup
	ends    bool
}

// New returns a manager of the loaded servers; Close ends it.
func New(cfg Config, l Loaded) *Manager {
	s := &Manager{cfg: cfg, list: map[string]servers.Server{}, wait: l.Pending, brought: l.brought}
	for _, x := range l.Servers {
		s.list[x.Name] = x
	}
	for _, x := range l.Invalid {
		if !slices.ContainsFunc(l.Pending, func(y Pending) bool { return y.Server.Name == x.Name }) {
			s.bad = append(s.bad, x)
		}
	}
	cfg.Folders.OnChange(func(dir string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.ends {
			s.work.Go(func() { s.reconsider(dir) })
		}
	})
	return s
}

func (s *Manager) changed(approvals bool) {
	if s.cfg.Changed != nil {
		s.cfg.Changed(approvals)
	}
}

// listens returns the addresses that this yaya listens on.
func (s *Manager) listens() []string {
	if s.cfg.Listens == nil {
		return nil
	}
	return s.cfg.Listens()
}

// SandboxesChanged looks again at servers that wait for a person to agree to what is
// enforced of their sandboxes: other settings may enforce more.
func (s *Manager) SandboxesChanged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if dir, err := folder.Resolve(s.cfg.Here); err == nil && !s.ends && len(s.wait) > 0 {
		s.work.Go(func() { s.reconsider(dir) })
	}
}

// Close waits for what is under way, and looks at no folder from then on.
func (s *Manager) Close() {
	s.mu.Lock()
	s.ends = true
	s.mu.Unlock()
	s.work.Wait()
}

// scope resolves the variables of a server's paths.
func (s *Manager) scope(x servers.Server) servers.Scope {
	if x.Project {
		return inFolder(filepath.Dir(x.File))
	}
	return servers.Scope{Env: os.LookupEnv, Home: s.cfg.Home, Workspace: s.cfg.Here}
}

func (s *Manager) editable(file string) bool { return s.cfg.Own && file == s.cfg.File }

// refused is [ErrRefused] whose text is the reason.
func refused(format string, args ...any) error {
	return &told{ErrRefused, fmt.Sprintf(format, args...)}
}

// mayChange returns an error if a server cannot be changed here; the caller holds mu.
func (s *Manager) mayChange(name string) error {
	if !s.cfg.Own {
		return refused("the servers come from the files that --mcp-config names")
	}
	x, known := s.list[name]
	if known && x.Package != "" {
		return refused("%q comes with the package %s, which you can switch off (yaya plugin disable %s)", name, x.Package, x.Package)
	}
	if known && !s.editable(x.File) {
		return refused("%q is configured in %s, which is not yaya's own file", name, x.File)
	}
	return nil
}

// Prepare checks the configuration that a server is to have, and says what it would run.
// Nothing happens before [Prepared.Apply] is called. from is the revision that the change
// was made from: another one now is [ErrStale]; "" is any.
func (s *Manager) Prepare(name string, config json.RawMessage, from string) (Prepared, error) {
	s.mu.Lock()
	now, known := s.list[name]
	wasBad := slices.ContainsFunc(s.bad, func(i servers.Invalid) bool { return i.Name == name })
	err := s.mayChange(name)
	s.mu.Unlock()
	if err != nil {
		return Prepared{}, err
	}
	if from != "" && (!known || from != Revision(now)) {
		return Prepared{}, &told{ErrStale, fmt.Sprintf("the server %q was changed meanwhile", name)}
	}
	base := ""
	if known {
		if base, err = written(now); err != nil {
			return Prepared{}, err
		}
	}
	doc, err := json.Marshal(map[string]any{"mcpServers": map[string]json.RawMessage{name: config}})
	if err != nil {
		return Prepared{}, refused("%v", err)
	}
	const source = "the request"
	cfg, err := servers.Parse(source, doc, servers.FormatYaya)
	if err != nil {
		return Prepared{}, refused("%v", err)
	}
	if len(cfg.Invalid) > 0 {
		return Prepared{}, refused("server %q: %v", name, cfg.Invalid[0].Err)
	}
	if len(cfg.Servers) != 1 {
		return Prepared{}, refused("the configuration is not that of one server")
	}
	wanted, err := cfg.Servers[0].Unmask(now)
	if err != nil {
		return Prepared{}, refused("server %q: %v", name, err)
	}
	expanded, _, _ := wanted.Expand(servers.Scope{Env: os.LookupEnv, Home: s.cfg.Home, Workspace: s.cfg.Here, Secret: s.namedSecret}) // lacks says what it lacks
	if err := CheckItself(expanded, s.cfg.Data, s.listens()); err != nil {
		return Prepared{}, refused("server %q: %v", name, err)
	}
	wanted.File = s.cfg.File
	notes := notesOf(source, name, cfg.Warnings)
	for _, c := range cfg.Changes {
		notes = append(notes, c.Text)
	}
	return s.prepared(wanted, base, known || wasBad, notes)
}

// prepared returns the change that replaces a server's entry, to be applied only while the
// entry is still base. It looks for what the server lacks, which may take a while.
func (s *Manager) prepared(wanted servers.Server, base string, known bool, notes []string) (Prepared, error) {
	masked, err := wanted.Masked()
	if err != nil {
		return Prepared{}, err
	}
	if wanted.Disabled {
		notes = append(notes, "it is switched off: nothing is started")
	}
	notes = append(slices.Clone(notes), s.lacks(wanted)...)
	runs, exactly := wanted.Runs(), wanted.RunsExactly()
	if wanted.Sandbox != nil {
		box := ", " + s.inSandbox(wanted)
		runs, exactly = runs+box, exactly+box
	}
	return Prepared{Server: wanted.Name, New: !known, Runs: runs, Exactly: exactly, Config: masked, Notes: notes, Apply: func(ctx context.Context) error {
		s.changing.Lock()
		defer s.changing.Unlock()
		now, err := s.state(wanted.Name)
		if err != nil {
			return err
		}
		if now != base {
			return &told{ErrStale, fmt.Sprintf("the server %q was changed since this was proposed: try again", wanted.Name)}
		}
		return s.put(ctx, wanted)
	}}, nil
}

// state returns the current configuration of a server as [written] has it, "" for none.
func (s *Manager) state(name string) (string, error) {
	s.mu.Lock()
	x, known := s.list[name]
	s.mu.Unlock()
	if !known {
		return "", nil
	}
	return written(x)
}

// written is a configuration as it is compared.
func written(x servers.Server) (string, error) {
	raw, err := json.Marshal(x)
	return string(raw), err
}

// put writes a server down and runs it, unless its entry was edited in the file and the
// edit is not taken over; changing is held.
func (s *Manager) put(ctx context.Context, x servers.Server) error {
	data, err := s.read()
	if err != nil {
		return err
	}
	if err := s.asRead(data, x.Name); err != nil {
		return err
	}
	if data, err = servers.Set(s.cfg.File, data, x); err != nil {
		return refused("%v", err) // the file belongs to its user, and has a mistake
	}
	if err := s.write(data); err != nil {
		return err
	}
	s.take(ctx, x)
	return nil
}

// take makes an entry of yaya's own file what is known of its server, and runs it;
// changing is held.
func (s *Manager) take(ctx context.Context, x servers.Server) {
	s.mu.Lock()
	s.list[x.Name] = x
	s.bad = slices.DeleteFunc(s.bad, func(i servers.Invalid) bool { return i.Name == x.Name })
	s.mu.Unlock()
	s.run(ctx, x)
}

// asRead reports that yaya's own file, whose content is data, has another entry for a
// server than the one that was read from it: to write it would lose what its user has
// edited.
func (s *Manager) asRead(data []byte, name string) error {
	x, bad, err := entryIn(s.cfg.File, data, name)
	if err != nil {
		return err
	}
	known, err := s.state(name)
	if err != nil {
		return err
	}
	file := ""
	if x != nil {
		if file, err = written(*x); err != nil {
			return err
		}
	}
	if file == known && (bad == nil || s.knownBad(servers.Invalid{Name: name, Err: bad})) {
		return nil
	}
	if bad != nil {
		return &told{ErrStale, fmt.Sprintf("the entry of %q in %s was edited, and the edit has a mistake: correct it (yaya reload shows it), then try again", name, s.cfg.File)}
	}
	return &told{ErrStale, fmt.Sprintf("the entry of %q in %s was edited, and yaya has not read the edit yet: yaya reload reads it, or shows the mistake elsewhere in the file that prevents it; then try again", name, s.cfg.File)}
}

// entryIn returns the entry of a server in the content of yaya's own file, nil if there
// is none; bad is why it cannot be used.
func entryIn(file string, data []byte, name string) (x *servers.Server, bad, err error) {
	cfg, err := servers.Parse(file, data, servers.FormatYaya)
	if err != nil {
		return nil, nil, refused("%v", err)
	}
	for i := range cfg.Servers {
		if cfg.Servers[i].Name == name {
			return &cfg.Servers[i], nil, nil
		}
	}
	for _, i := range cfg.Invalid {
		if i.Name == name {
			return nil, i.Err, nil
		}
	}
	return nil, nil, nil
}

// run restarts a server with its configuration; the caller holds changing.
func (s *Manager) run(ctx context.Context, x servers.Server) {
	if s.cfg.Bridge == nil {
		return
	}
	s.cfg.Bridge.Remove(x.Name)
	for _, w := range s.cfg.Bridge.Add(context.WithoutCancel(ctx), x) {
		s.cfg.Log.Warn().Msg(w)
	}
	s.changed(false)
}

// Remove stops a server and removes it from the configuration.
func (s *Manager) Remove(name string) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	err := s.mayChange(name)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	data, err := s.read()
	if err != nil {
		return err
	}
	data, found, err := servers.Unset(s.cfg.File, data, name)
	if err != nil {
		return refused("%v", err)
	}
	if !found {
		return &told{ErrUnknown, fmt.Sprintf("there is no server %q in %s", name, s.cfg.File)}
	}
	if err := s.write(data); err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.list, name)
	s.bad = slices.DeleteFunc(s.bad, func(i servers.Invalid) bool { return i.Name == name })
	s.mu.Unlock()
	if s.cfg.Bridge != nil {
		s.cfg.Bridge.Remove(name)
	}
	err = s.cfg.Trust.Forget(name) // nothing is left that could write it again
	s.changed(true)
	if err != nil {
		return fmt.Errorf("the server %q was removed, but its approvals could not be deleted: %w", name, err)
	}
	return nil
}

// Restart stops a server and starts it again with its configuration.
func (s *Manager) Restart(ctx context.Context, name string) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	x, known := s.list[name]
	err := s.unknown(name)
	s.mu.Unlock()
	switch {
	case !known:
		return err
	case x.Disabled:
		return refused("server %q cannot restart, because it is disabled (to start it: yaya mcp enable %s)", name, name)
	case s.cfg.Bridge == nil:
		return refused("server %q cannot restart, because yaya is not running (to start yaya and its servers: yaya serve)", name)
	}
	s.run(ctx, x)
	if why := s.unusable(name); why != nil {
		return refused("%q was not started: %v", name, why)
	}
	return nil
}

// unusable returns why a server that was added to the bridge cannot be used, nil if it can,
// or if nothing runs here.
func (s *Manager) unusable(name string) error {
	if s.cfg.Bridge == nil {
		return nil
	}
	for _, i := range s.cfg.Bridge.InvalidServers() {
		if i.Name == name {
			return i.Err
		}
	}
	return nil
}
