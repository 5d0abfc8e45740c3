package folder

import (
	"errors"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/event"
)

// lookTime is how long a look can be joined, from when it began.
const lookTime = 100 * time.Millisecond

// errNotOpened is the error of a look until it has been taken.
var errNotOpened = errors.New("the folder could not be looked at")

// look is a session's folder, open, with its status, as both were at one moment.
type look struct {
	once sync.Once
	w    *workspace.Workspace // nil if the folder cannot be opened
	st   Status
	err  error

	began time.Time
	users int // guarded by the gate's mutex
}

// hold is a session's claim to share looks; its fields are guarded by the gate's mutex.
type hold struct {
	look  *look        // the last one, nil before the first
	leave func() error // ends the hold's own use of it
}

// Open opens the folder that a session works in, and reports whether the session may use it, as
// [Gate.Trusted] does: that concerns the open folder, whatever happens to its path meanwhile. The
// caller closes the workspace.
func (g *Gate) Open(session string) (w *workspace.Workspace, trusted bool, err error) {
	dir, err := g.cfg.Folder(session)
	if err != nil {
		return nil, false, err
	}
	w, st, err := g.cfg.Store.Open(dir)
	if w == nil {
		return nil, false, err
	}
	return w, g.mayUse(session, st, err), nil
}

// Reopen opens a folder that calls of a session have changed, so that it can be put back; the session may
// work in another one since. It reports whether the user trusts the open folder, or did before its content
// changed: the calls may have changed what the trust is bound to. The caller closes the workspace.
func (g *Gate) Reopen(session, dir string) (w *workspace.Workspace, trusted bool, err error) {
	w, st, err := g.cfg.Store.Open(dir)
	if w == nil || err != nil {
		return w, false, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return w, st.Was != nil || g.sessions[event.Root(session)].trusted, nil
}

// Restricted says why a session may not use its folder, with the remedy; "" if it may, and if the folder
// cannot be looked at.
func (g *Gate) Restricted(session string) string {
	dir, err := g.cfg.Folder(session)
	if err != nil {
		return ""
	}
	st, err := g.cfg.Store.Status(dir)
	if err != nil || g.mayUse(session, st, nil) {
		return ""
	}
	why := "nobody has trusted it"
	if st.Was != nil {
		why = "it has changed since it was trusted"
		if changes := st.Differences(); changes != "" {
			why += ": " + changes
		}
	}
	return restricted(st.Folder, why)
}

// mayUse reports whether a session may use a folder with that status.
func (g *Gate) mayUse(session string, st Status, err error) bool {
	return err == nil && (st.Trusted || g.of(session, st.Digest()).trusted)
}

// Hold makes all calls of [Gate.Look] for a session share one opening of its folder, until end is
// called. A session has one hold at a time; another one takes its place.
func (g *Gate) Hold(session string) (end func()) {
	h := &hold{leave: func() error { return nil }}
	g.mu.Lock()
	g.holds[session] = h
	g.mu.Unlock()
	return func() {
		g.mu.Lock()
		if g.holds[session] == h {
			delete(g.holds, session)
		}
		leave := h.leave
		g.mu.Unlock()
		_ = leave() // nothing was written
	}
}

// Look is [Gate.Open] for what a request for a model is made of: during a [Gate.Hold] of the session,
// callers get what one of them has opened up to 100 ms before, unless the trust in a folder has been
// changed here meanwhile.
func (g *Gate) Look(session string) (w *workspace.Workspace, trusted bool, err error) {
	now := time.Now()
	g.mu.Lock()
	h := g.holds[session]
	if h == nil {
		g.mu.Unlock()
		return g.Open(session)
	}
	before := func() error { return nil }
	if h.look == nil || now.Sub(h.look.began) >= lookTime {
		before, h.look = h.leave, &look{began: now, users: 1, err: errNotOpened}
		h.leave = g.leave(h.look)
	}
	l := h.look
	l.users++
	g.mu.Unlock()
	_ = before() // nothing was written
	leave := g.leave(l)
	dir, err := g.cfg.Folder(session)
	if err != nil {
		return nil, false, errors.Join(err, leave())
	}
	l.once.Do(func() { l.w, l.st, l.err = g.cfg.Store.Open(dir) })
	if l.w == nil {
		return nil, false, errors.Join(l.err, leave())
	}
	return l.w.Lent(l.w.Dir(), leave), g.mayUse(session, l.st, l.err), nil
}

// leave ends one use of a look, once however often it is called. The last user closes the folder.
func (g *Gate) leave(l *look) func() error {
	return sync.OnceValue(func() error {
		g.mu.Lock()
		l.users--
		last := l.users == 0
		g.mu.Unlock()
		if !last || l.w == nil {
			return nil
		}
		return l.w.Close()
	})
}
