package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/lsp"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Bounds of language servers.
const (
	maxServers   = 8                // that run at once
	serverIdle   = 10 * time.Minute // after which one that is not asked ends
	startLimit   = time.Minute
	maxWatched   = 20_000 // files of a workspace of whose changes a server is told
	serverEnding = 2 * time.Second
)

// asReader is the sandbox of language servers: they run code of the workspace, such as plugins that
// it configures, and write nothing there.
var asReader = use{profile: asCheck.profile, require: CheckNeeds, reads: true}

// errBusy is returned when more servers would run at once than may.
var errBusy = fmt.Errorf("%d language servers are at work: ask again later", maxServers)

// langservers are those that run.
type langservers struct {
	mu     sync.Mutex
	all    map[serverKey]*langserver
	closed bool
	ends   sync.WaitGroup // of servers
}

// serverKey identifies a server.
type serverKey struct {
	session, folder string
	language        *language
}

// langserver is a server, or the place of one that is being started. The holder of turn uses it.
type langserver struct {
	turn  chan struct{} // has room for one
	users int           // calls that use it or wait for it; guarded by langservers.mu
	used  time.Time     // guarded by langservers.mu
	idle  *time.Timer   // guarded by langservers.mu

	srv   *lsp.Server // nil before it has started
	child *proc.Process
	at    *place
	files map[string]time.Time // of its language, when it was asked last
}

// use returns a server's place for the caller alone until release is called. A place is lost when
// its session ends, even while a call waits for it.
func (l *langservers) use(ctx context.Context, key serverKey) (s *langserver, release func(), err error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, nil, errors.New("yaya is ending")
	}
	s = l.all[key]
	if s == nil {
		if len(l.all) >= maxServers && !l.endOldest() {
			l.mu.Unlock()
			return nil, nil, errBusy
		}
		s = &langserver{turn: make(chan struct{}, 1)}
		s.idle = time.AfterFunc(serverIdle, func() { l.endIdle(key, s) })
		l.all[key] = s
	}
	s.users++
	l.mu.Unlock()
	done := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		s.users--
		s.used = time.Now()
		if l.all[key] == s {
			s.idle.Reset(serverIdle)
		}
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		done()
		return nil, nil, context.Cause(ctx)
	}
	release = func() { <-s.turn; done() }
	l.mu.Lock()
	lost := l.all[key] != s
	l.mu.Unlock()
	if lost {
		release()
		return nil, nil, errors.New("the programs of this session have been ended: ask again")
	}
	return s, release, nil
}

// endOldest ends the server that nobody uses for the longest time.
func (l *langservers) endOldest() bool {
	var oldest serverKey
	found := false
	for key, s := range l.all {
		if s.users == 0 && (!found || s.used.Before(l.all[oldest].used)) {
			oldest, found = key, true
		}
	}
	if found {
		l.drop(oldest)
	}
	return found
}

// drop ends a server in the background.
func (l *langservers) drop(key serverKey) {
	s := l.all[key]
	delete(l.all, key)
	s.idle.Stop()
	l.ends.Go(s.end)
}

// endIdle ends a server that nobody has used for a while.
func (l *langservers) endIdle(key serverKey, s *langserver) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all[key] == s && s.users == 0 && time.Since(s.used) >= serverIdle {
		l.drop(key)
	}
}

// endOf ends the servers of a session and of its sub-agents.
func (l *langservers) endOf(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.all {
		if belongs(key.session, session) {
			l.drop(key)
		}
	}
}

// open lets servers start, after a close, too.
func (l *langservers) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = false
}

// close ends all servers, and waits for that.
func (l *langservers) close() {
	l.mu.Lock()
	l.closed = true
	for key := range l.all {
		l.drop(key)
	}
	l.mu.Unlock()
	l.ends.Wait()
}

// end ends a server when its user has done.
func (s *langserver) end() {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.stop()
}

// stop ends the process. The caller has the turn.
func (s *langserver) stop() {
	if s.srv == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), serverEnding)
	defer cancel()
	kill := context.AfterFunc(ctx, s.child.Kill) // it may not read
	defer kill()
	_ = s.srv.Close(ctx) // a server that does not answer is ended by force
	s.child.Stop(ctx)
	s.srv.Wait()
	_ = s.child.Stdout.Close()
	s.at.close()
	s.srv = nil
}

// running starts the server unless it runs. The caller has the turn.
func (p *Plugin) running(ctx context.Context, s *langserver, key serverKey, w *workspace.Workspace) error {
	if s.srv != nil {
		select {
		case <-s.srv.Done():
			s.stop()
		default:
			return nil
		}
	}
	set, err := p.settle(key.session, "", asReader)
	if err != nil {
		return failure(tool.ErrUnavailable, err)
	}
	if set.box.none { // require does not hold with the mode "off"
		set.at.close()
		return &tool.Failure{Kind: tool.ErrUnavailable, Err: fmt.Errorf("a language server runs code of the workspace without a question, so it needs a sandbox, and the setting sandbox.mode is off: %s", p.cfg.Sandboxes.Settings().SetMode(sandbox.Prefer))}
	}
	command := key.language.installed(set.env, w)
	if command == nil {
		set.at.close()
		return &tool.Failure{Kind: tool.ErrUnavailable, Err: fmt.Errorf("there is no language server for these files on this machine: install %s, so that yaya finds it on its PATH", key.language.names())}
	}
	set.apart = true
	child, err := p.start(ctx, set, "exec "+shellWords(command), nil, nil)
	if err != nil {
		set.at.close()
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	stop := context.AfterFunc(ctx, child.Kill) // it may not read
	srv := lsp.New(canonical(set.at.root), child.Stdout, child.Stdin)
	err = srv.Initialize(ctx, key.language.options)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		child.Kill()
		srv.Wait()
		_ = child.Stdout.Close()
		set.at.close()
		return &tool.Failure{Kind: tool.ErrUnavailable, Err: fmt.Errorf("start %s: %w", filepath.Base(command[0]), p.wrote(child, err))}
	}
	p.langs.ends.Go(func() { // nobody reads from a server that breaks the protocol
		<-srv.Done()
		child.Stop(context.Background())
	})
	s.srv, s.child, s.at, s.files = srv, child, set.at, nil
	return nil
}

// wrote adds what a process that has ended wrote to standard error.
func (p *Plugin) wrote(child *proc.Process, err error) error {
	said := p.c.Secrets().String(strings.TrimSpace(child.Stderr()))
	if said == "" {
		return err
	}
	return fmt.Errorf("%w; it wrote: %.500s", err, said)
}

// tellChanges tells the server which files of its language have changed since it was asked last.
func (s *langserver) tellChanges(ctx context.Context, w *workspace.Workspace, l *language) error {
	now := map[string]time.Time{}
	err := w.Walk(ctx, ".", func(e workspace.Entry) error {
		if of, _ := languageOf(e.Path); of == l && len(now) < maxWatched {
			now[e.Path] = e.Modified
		}
		return nil
	})
	if err != nil {
		return err
	}
	var made, changed, removed []string
	for p, at := range now {
		if was, there := s.files[p]; !there {
			made = append(made, p)
		} else if !was.Equal(at) {
			changed = append(changed, p)
		}
	}
	for p := range s.files {
		if _, there := now[p]; !there {
			removed = append(removed, p)
		}
	}
	first := s.files == nil
	s.files = now
	if first {
		return nil // it has just read them
	}
	return s.srv.Changed(made, changed, removed)
}

// shellWords quotes words for sh.
func shellWords(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(out, " ")
}
