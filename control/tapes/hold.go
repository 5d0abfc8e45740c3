package tapes

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	"github.com/google/uuid"
)

// session has the state of a session that this node owns, or wants to.
type session struct {
	t       *Tapes
	id      string
	subject string

	// claim is held while a message of the session is sent: there is one at a time.
	claim sync.Mutex
	seq   uint64 // of the last message; claim is held

	mu        sync.Mutex
	run       string          // the lease with which this node owns it, "" if it does not
	claimed   bool            // it was, since the node runs, and neither deleted nor lost
	ready     bool            // its files are compared with the stream since
	workspace string          // that it was claimed with
	owner     string          // the node that owns it instead
	there     map[string]File // what the stream has
	want      map[string]File // what it is to have beside that
	again     bool            // all files are to follow again: one has changed other than at its end
	whole     bool            // they do, and until the last one has, none of them counts
	edits     int64           // counts how often files were replaced as a whole
	waste     int64           // bytes in the stream that no longer count
	sending   bool
	row       []byte // what is said of it in lists
	rowWanted bool
	problem   error         // why nothing was sent the last time
	changed   chan struct{} // closed when something was sent, or the session was lost
}

// session returns what is known of a session; it is kept as long as the node runs.
func (t *Tapes) session(id string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[id]
	if s == nil {
		s = &session{t: t, id: id, subject: subject(id), there: map[string]File{}, want: map[string]File{}, changed: make(chan struct{})}
		t.sessions[id] = s
	}
	return s
}

func subject(id string) string { return sessions + "." + token(id) }

// tell tells those who wait that something has changed; mu is held.
func (s *session) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// note returns a note of this node about the session.
func (s *session) note(op, run string) note {
	s.mu.Lock()
	defer s.mu.Unlock()
	return note{Op: op, Session: s.id, Node: s.t.o.Node, Run: run, ID: uuid.NewString(), Workspace: s.workspace}
}

// Hold returns nil while this node may act for a session: it claims one that no node has, and waits
// while the node has no lease ([ErrUnavailable] after 12 s). The error is an [*ElsewhereError] for a
// session that another node owns, and wraps [ErrBehind] if the cluster has more of it. workspace is the
// folder that the session works in.
func (t *Tapes) Hold(ctx context.Context, id, workspace string) error {
	me, err := t.alive(ctx)
	if err != nil {
		return err
	}
	s := t.session(id)
	if s.owned(me.Run) {
		return nil
	}
	s.claim.Lock()
	defer s.claim.Unlock()
	if s.owned(me.Run) { // somebody else has claimed it for this node meanwhile
		return nil
	}
	for {
		last, n, err := t.newest(ctx, id)
		if err != nil {
			return fmt.Errorf("%w (%w)", ErrUnavailable, err)
		}
		if last != nil && n.Node != t.o.Node && (n.Op != opGone || s.had()) {
			s.lose(n.Node)
			return &ElsewhereError{id, n.Node}
		}
		switch err := s.take(ctx, me.Run, workspace, last); {
		case isBehind(err):
			continue
		case err != nil:
			return fmt.Errorf("%w (%w)", ErrUnavailable, err)
		}
		s.mu.Lock()
		s.rowWanted = s.rowWanted || last == nil || n.Op == opGone
		s.mu.Unlock()
		if err := s.compare(ctx, last != nil && n.Op != opGone); err != nil {
			s.drop()
			return err
		}
		return nil
	}
}

// owned reports whether this node owns the session by a lease, and has all of it.
func (s *session) owned(run string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run == run && s.ready
}

// had reports whether this node has claimed the session, and knows of no other one since.
func (s *session) had() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claimed
}

// drop has the session claimed again before this node acts for it.
func (s *session) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run, s.ready = "", false
	s.tell()
}

// newest returns the last message of a session, nil if there is none.
func (t *Tapes) newest(ctx context.Context, id string) (*stored, note, error) {
	msg, err := t.last(ctx, sessions, subject(id))
	if err != nil || msg == nil {
		return nil, note{}, err
	}
	n, err := noteOf(msg.header)
	if err == nil && n.Session != id {
		err = fmt.Errorf("the messages of session %s are those of %s", id, n.Session)
	}
	return msg, n, err
}

// take claims the session behind a message; claim is held.
func (s *session) take(ctx context.Context, run, workspace string, last *stored) error {
	n := s.note(opClaim, run)
	n.Workspace = workspace
	msg, err := n.message(s.subject, nil)
	if err != nil {
		return err
	}
	behind := uint64(0)
	if last != nil {
		behind = last.seq
	}
	seq, err := s.t.put(ctx, sessions, msg, behind)
	if err != nil {
		return err
	}
	s.seq = seq
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run, s.owner, s.workspace, s.claimed, s.ready = run, "", workspace, true, false
	s.there, s.want, s.again = map[string]File{}, map[string]File{}, false // what grows from here on is wanted
	s.tell()
	return nil
}

// compare finds out what the stream has of the session, and has the rest sent; claim is held.
func (s *session) compare(ctx context.Context, any bool) error {
	mine, err := s.t.o.Files(s.id)
	if err != nil {
		return err
	}
	var have content
	if any {
		if have, err = s.t.index(ctx, s.subject, s.seq); err != nil {
			return fmt.Errorf("%w (%w)", ErrUnavailable, err)
		}
	}
	s.mu.Lock()
	s.waste, s.again = have.waste, s.again || have.broken
	s.mu.Unlock()
	for _, f := range mine {
		there, is := have.files[f.Name]
		if is && f.Generation != "" && there.Generation == f.Generation && there.Size > f.Size {
			return ErrBehind
		}
		same := is && there.Generation == f.Generation && there.Size <= f.Size
		if same {
			if same, err = s.t.equal(f.Name, there); err != nil {
				return err
			}
		}
		s.mu.Lock()
		switch {
		case same:
			s.there[f.Name] = there.File
			if f.Size > there.Size {
				s.wish(f)
			}
		case is && f.Generation != "":
			s.again = true
		default:
			s.wish(f)
		}
		s.mu.Unlock()
		delete(have.files, f.Name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again = s.again || len(have.files) > 0 // they are gone here
	s.ready = true
	s.send()
	s.tell()
	return nil
}

// wish has a file sent, unless more of it is wanted; mu is held.
func (s *session) wish(f File) {
	if _, is := s.want[f.Name]; !is {
		s.want[f.Name] = f
	}
}

// lose notes that another node owns the session.
func (s *session) lose(node string) {
	s.mu.Lock()
	had := s.run != ""
	s.run, s.claimed, s.ready, s.owner, s.want, s.there, s.again = "", false, false, node, map[string]File{}, map[string]File{}, false
	s.tell()
	s.mu.Unlock()
	if !had {
		return
	}
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	s.t.begin(func() { s.t.o.Lost(s.id, node) })
}

// Owner returns the node that owns a session, or has deleted it as another one's, "" if none does. Nothing is
// known while the cluster does not answer.
func (t *Tapes) Owner(ctx context.Context, id string) (node string, known bool) {
	if !t.now().valid(time.Now()) {
		return "", false
	}
	last, n, err := t.newest(ctx, id)
	if err != nil {
		return "", false
	}
	if last == nil || n.Op == opGone && n.Node == t.o.Node {
		return "", true
	}
	return n.Node, true
}

// Takeover claims a session whose node is dead, and makes its files in a new folder, whose name below
// the data directory it returns; the caller moves them to their places, or removes the folder. A
// session of this node is made, too, if it is not here. The error is [ErrUnknown] if no node has the
// session, an [*ElsewhereError] while its node runs, and that of may, which is asked before about the
// session's workspace.
func (t *Tapes) Takeover(ctx context.Context, id string, may func(workspace string) error) (dir string, err error) {
	last, n, err := t.newest(ctx, id)
	if err != nil {
		return "", fmt.Errorf("%w (%w)", ErrUnavailable, err)
	}
	if last == nil || n.Op == opGone {
		return "", ErrUnknown
	}
	me, err := t.alive(ctx)
	if err != nil {
		return "", err
	}
	if n.Node != t.o.Node {
		dead, err := t.dead(ctx, n.Node)
		if err != nil {
			return "", err
		}
		if !dead {
			return "", &ElsewhereError{id, n.Node}
		}
	}
	if err := may(n.Workspace); err != nil {
		return "", err
	}
	s := t.session(id)
	s.claim.Lock()
	defer s.claim.Unlock()
	switch err := s.take(ctx, me.Run, n.Workspace, last); {
	case isBehind(err): // its node, or another one, was first
		return "", &ElsewhereError{id, n.Node}
	case err != nil:
		return "", fmt.Errorf("%w (%w)", ErrUnavailable, err)
	}
	dir, have, err := t.arrive(ctx, s.subject, s.seq, token(id))
	if err == nil {
		err = s.inheritRow(ctx)
	}
	if err != nil {
		s.drop()
		if dir != "" {
			err = errors.Join(err, t.o.Data.RemoveAll(path.Dir(dir)))
		}
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.there, s.want, s.waste, s.again, s.ready = have.listed(), map[string]File{}, have.waste, have.broken, true
	s.send()
	if n.Node != t.o.Node {
		t.o.Log.Warn().Str("session", id).Str("node", n.Node).Msg("this node has taken a session over")
	}
	return dir, nil
}

// Fetch makes the files of a session in a new folder, as [Tapes.Takeover] does, without claiming it.
func (t *Tapes) Fetch(ctx context.Context, id string) (dir string, err error) {
	last, n, err := t.newest(ctx, id)
	if err != nil {
		return "", fmt.Errorf("%w (%w)", ErrUnavailable, err)
	}
	if last == nil || n.Op == opGone {
		return "", ErrUnknown
	}
	dir, _, err = t.arrive(ctx, subject(id), last.seq, token(id))
	return dir, err
}

// Gone has the cluster forget a session that was deleted.
func (t *Tapes) Gone(ctx context.Context, id string) error {
	s := t.session(id)
	s.claim.Lock()
	defer s.claim.Unlock()
	s.mu.Lock()
	run := s.run
	s.mu.Unlock()
	if run == "" {
		return errors.New("this node does not own it")
	}
	if err := s.append(ctx, s.note(opGone, run), nil); err != nil {
		return err
	}
	s.mu.Lock()
	s.run, s.claimed, s.ready = "", false, false
	s.there, s.want, s.again = map[string]File{}, map[string]File{}, false
	s.tell()
	s.mu.Unlock()
	return errors.Join(s.forget(ctx, s.seq), s.forgetRow(ctx))
}
