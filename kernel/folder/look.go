package folder

import (
	"errors"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/workspace"
)

// lookTime is how long after it was opened a look can be joined.
const lookTime = 100 * time.Millisecond

// errNotOpened is the error of a look until it is taken.
var errNotOpened = errors.New("the folder could not be looked at")

// look is an open folder with its status, as it was at one moment. All that begin to use the folder
// soon, while the first of them does, see the same.
type look struct {
	once sync.Once
	w    *workspace.Workspace // nil if the folder cannot be opened
	st   Status
	err  error

	users  int       // with the lock of the gate, as opened
	opened time.Time // 0 before that
}

// Open opens the folder that a session works in, and reports whether the session may use it, as
// [Gate.Trusted] does: that concerns what is open, whatever happens to its path meanwhile. The caller
// closes the workspace. Callers see the same as the one that has opened the folder up to 100 ms before
// them, until that one closes it or its [Gate.Hold] ends, or the trust in a folder changes here.
func (g *Gate) Open(session string) (w *workspace.Workspace, trusted bool, err error) {
	dir, err := g.cfg.Folder(session)
	if err != nil {
		return nil, false, err
	}
	l, leave := g.join(dir, true)
	l.once.Do(func() { l.w, l.st, l.err = g.cfg.Store.Open(dir) })
	if l.w == nil {
		return nil, false, errors.Join(l.err, leave())
	}
	trusted = l.err == nil && (l.st.Trusted || g.of(session, l.st.Digest()).trusted)
	return l.w.Lent(leave), trusted, nil
}

// Hold makes all that open the folder of a session until end is called, within 100 ms of each other,
// see the same.
func (g *Gate) Hold(session string) (end func()) {
	dir, err := g.cfg.Folder(session)
	if err != nil {
		return func() {} // nobody can open it
	}
	_, leave := g.join(dir, false)
	return func() { _ = leave() } // nothing was written
}

// join returns the present look at a folder, or else a new one. leave has to be called, and does
// nothing if it is called again.
func (g *Gate) join(dir string, opens bool) (l *look, leave func() error) {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	l, joined := g.looks[dir]
	if joined = joined && (l.opened.IsZero() || now.Sub(l.opened) < lookTime); !joined {
		l = &look{err: errNotOpened}
		g.looks[dir] = l
	}
	if opens && l.opened.IsZero() {
		l.opened = now
	}
	l.users++
	return l, sync.OnceValue(func() error {
		g.mu.Lock()
		if !joined && g.looks[dir] == l {
			delete(g.looks, dir)
		}
		l.users--
		last := l.users == 0
		g.mu.Unlock()
		if !last || l.w == nil {
			return nil
		}
		return l.w.Close()
	})
}
