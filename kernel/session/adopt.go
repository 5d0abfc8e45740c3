package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/event"
)

// workable returns why this node cannot work in a folder.
func workable(workspace string) error {
	if workspace == Nowhere {
		return nil
	}
	info, err := os.Stat(workspace) //nolint:forbidigo // the workspace may be anywhere
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a folder")
	}
	if err != nil {
		return worded.Error(ErrElsewhere, "this node cannot take the session over, because it cannot use its folder %s: %v", workspace, err)
	}
	return nil
}

// adopts waits until nobody else takes a session over, and has others wait until done is called.
func (m *Manager) adopts(ctx context.Context, id string) (done func(), err error) {
	for {
		m.mu.Lock()
		other := m.adopting[id]
		if other == nil {
			mine := make(chan struct{})
			m.adopting[id] = mine
			m.mu.Unlock()
			return func() {
				m.mu.Lock()
				defer m.mu.Unlock()
				delete(m.adopting, id)
				close(mine)
			}, nil
		}
		m.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Adopt takes a session over whose node is dead, if this node has its folder, and repairs it as after a
// crash. A session that this node has is left as it is.
func (m *Manager) Adopt(ctx context.Context, id string) (*Session, error) {
	if m.cfg.Owner == nil || event.CheckSession(id) != nil || event.Root(id) != id || id == event.KernelSession {
		return nil, notFound(id)
	}
	done, err := m.adopts(ctx, id)
	if err != nil {
		return nil, err
	}
	defer done()
	if s, err := m.Find(id, ""); !errors.Is(err, ErrNotFound) {
		return s, err
	}
	dir, err := m.cfg.Owner.Takeover(ctx, id, workable)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(m.arrive(ctx, id, dir), m.removeAll(path.Dir(dir), maxFolders)); err != nil {
		return nil, fmt.Errorf("session %s was taken over, and its files could not be put in their places: %w", id, err)
	}
	s, err := m.Find(id, "")
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	if err = s.load(); err == nil {
		err = s.newEpoch("taken over from another node") // which may have had more
	}
	queued := len(s.st.queue) > 0
	s.mu.Unlock()
	if err == nil && queued {
		err = s.mark()
	}
	if err == nil && m.cfg.Adopted != nil {
		m.cfg.Adopted(s)
	}
	return s, err
}

// fetchParents gets the tapes that a fork reads, for the archive. One that nobody has is missing, as
// after damage.
func (m *Manager) fetchParents(ctx context.Context, p *parent) error {
	for range maxDepth {
		if p == nil {
			return nil
		}
		_, h, err := m.parentFile(*p)
		if err == nil {
			p = h.Parent
			continue
		}
		if !errors.Is(err, errLost) {
			return err
		}
		dir, err := m.cfg.Owner.Fetch(ctx, event.Root(p.SessionID))
		if errors.Is(err, ErrNotFound) {
			m.cfg.Log.Warn().Str("session", p.SessionID).Msg("no node has the tape that a session was forked from")
			return nil
		}
		if err != nil {
			return err
		}
		next, err := m.keepParent(dir, *p)
		if err = errors.Join(err, m.removeAll(path.Dir(dir), maxFolders)); err != nil {
			return err
		}
		p = next
	}
	return nil
}

// keepParent puts the tape of a fork's parent into the archive, and returns that one's parent.
func (m *Manager) keepParent(dir string, p parent) (*parent, error) {
	from := path.Join(dir, tapeFile(p.Tape))
	h, _, err := m.header(from)
	if errors.Is(err, fs.ErrNotExist) || err == nil && h.Epoch != p.Epoch { // it was begun again since
		m.cfg.Log.Warn().Str("session", p.SessionID).Msg("no node has the tape that a session was forked from")
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	to := path.Join(archiveDir, p.Tape+".jsonl."+stamp(time.Now())+deletedSuffix)
	return h.Parent, errors.Join(m.cfg.FS.Rename(from, to), m.cfg.FS.SyncDir(archiveDir))
}

// arrive moves the files of a session to their places, and the tapes last: a folder without a tape does not
// count.
func (m *Manager) arrive(ctx context.Context, id, dir string) error {
	var tapes, files []string
	if err := m.below(dir, maxFolders, func(name string) {
		rel := strings.TrimPrefix(name, dir+"/")
		if path.Dir(rel) == tapesDir {
			tapes = append(tapes, rel)
		} else {
			files = append(files, rel)
		}
	}); err != nil {
		return err
	}
	folders, rank := map[string]bool{}, map[string]int{}
	for _, name := range tapes {
		h, _, err := m.header(path.Join(dir, name))
		if err != nil {
			return err
		}
		if event.Root(h.SessionID) != id || name != tapeFile(TapeName(h.Workspace, h.SessionID)) {
			return fmt.Errorf("%s is the tape of session %q", name, h.SessionID)
		}
		folders[path.Join(filesDir, event.Folder(h.SessionID))] = true
		rank[name] = strings.Count(h.SessionID, event.AgentSeparator)
		if h.Parent != nil && event.Root(h.Parent.SessionID) != id {
			if err := m.fetchParents(ctx, h.Parent); err != nil {
				return err
			}
		}
	}
	if len(tapes) == 0 {
		return notFound(id)
	}
	for folder := range folders { // what an earlier stay on this node has left
		if err := m.removeAll(folder, maxFolders); err != nil {
			return err
		}
	}
	for _, name := range files {
		if parts := strings.SplitN(name, "/", 3); len(parts) < 3 || !folders[path.Join(parts[0], parts[1])] || strings.HasSuffix(name, ".part") {
			continue
		}
		if err := m.cfg.FS.MkdirAll(path.Dir(name)); err != nil {
			return err
		}
		if err := m.cfg.FS.Rename(path.Join(dir, name), name); err != nil {
			return err
		}
	}
	// That of the session itself is the last one: a crash before that leaves a session that is not here.
	slices.SortStableFunc(tapes, func(a, b string) int { return cmp.Compare(rank[b], rank[a]) })
	defer m.index.naming()()
	for _, name := range tapes {
		tape := strings.TrimSuffix(path.Base(name), ".jsonl")
		if err := m.cfg.FS.Rename(path.Join(dir, name), name); err != nil {
			return err
		}
		key, ok := keyOf(tape)
		if !ok {
			return fmt.Errorf("%s is not the name of a tape", name)
		}
		if err := m.describe(key, tape, time.Now()); err != nil {
			return err
		}
	}
	return m.cfg.FS.SyncDir(tapesDir)
}
