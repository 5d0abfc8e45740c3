package sessions

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// made is a request to make a session, checked.
type made struct {
	workspace, system, title, strategy, model string
	mode                                      session.Mode
	autoRun                                   bool
	approvalTimeout                           int
	key, digest                               string
	client                                    *Client
}

// checked checks a request for a session.
func (s *Service) checked(who auth.Principal, b newSession) (made, error) {
	if !filepath.IsAbs(b.Workspace) {
		return made{}, api.Coded(http.StatusBadRequest, "bad_workspace", "workspace_path has to be absolute")
	}
	dir, err := s.cfg.MayUse(who, b.Workspace)
	if err != nil {
		return made{}, api.Coded(http.StatusForbidden, "workspace_not_allowed", "%v", err)
	}
	info, err := os.Stat(dir) //nolint:forbidigo // the workspace is named by the user, and may be anywhere
	if err != nil || !info.IsDir() {
		return made{}, api.Coded(http.StatusBadRequest, "bad_workspace", "workspace_path %q is not a folder that yaya can use", dir)
	}
	if b.Strategy != "" && !s.cfg.HasStrategy(b.Strategy) {
		return made{}, api.Coded(http.StatusBadRequest, "bad_strategy", "there is no strategy %q", b.Strategy)
	}
	if err := s.checkModel(b.Model); err != nil {
		return made{}, err
	}
	if err := maySet(who, session.Mode(b.Mode)); err != nil {
		return made{}, err
	}
	raw, err := json.Marshal(b)
	if err != nil {
		return made{}, err
	}
	secrets := s.cfg.Secrets
	return made{
		workspace: filepath.Clean(dir), system: secrets.ConcealString(b.SystemPrompt), title: secrets.ConcealString(b.Title), strategy: b.Strategy, model: b.Model, mode: cmp.Or(session.Mode(b.Mode), session.Work),
		autoRun: b.AutoRun == nil || *b.AutoRun, approvalTimeout: b.ApprovalTimeout, digest: digest(string(raw)),
	}, nil
}

// digestKey is an Idempotency-Key as it is kept. Clients choose their keys without
// knowing those of others, so each principal has its own.
func digestKey(ctx context.Context, key string) string {
	p := auth.FromContext(ctx)
	if p.Kind == auth.Owner {
		return digest(key)
	}
	return digest(key, strconv.Itoa(int(p.Kind)), p.Actor())
}

func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(strconv.Itoa(len(p)) + ":" + p))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// make makes a session; one that was made with that key is returned
// again, if the request is the same.
func (s *Service) make(m made) (Session, error) {
	if m.key != "" {
		if err := s.noted(); err != nil {
			return Session{}, err
		}
	}
	s.create.Lock()
	defer s.create.Unlock()
	was, err := s.keyed(m.key)
	if err != nil {
		return Session{}, err
	}
	if was != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if was.Digest != m.digest {
			return Session{}, api.Coded(http.StatusConflict, "idempotency_conflict", "another request was made with this Idempotency-Key")
		}
		return was.Session, nil
	}
	if err := s.cfg.Sessions.Room(); err != nil {
		return Session{}, err
	}
	now := now()
	r := record{Session: Session{
		ID: newID("sess_", now), CreatedAt: now, UpdatedAt: now, Status: Active, Workspace: m.workspace, SystemPrompt: m.system, AutoRun: m.autoRun,
		Title: m.title, Strategy: m.strategy, Model: m.model, Mode: m.mode, ApprovalTimeout: m.approvalTimeout,
	}, Key: m.key, Digest: m.digest, Client: m.client}
	r.touch(time.Now())
	// The folder first: a crash leaves one without a tape, which is not a session.
	if err := s.save(r); err != nil {
		return Session{}, err
	}
	k, err := s.cfg.Sessions.OpenIn(r.ID, m.workspace, m.mode)
	if err == nil && m.system != "" {
		err = k.SetSystem(m.system)
	}
	if err == nil && m.model != "" {
		err = k.SetModel(context.Background(), m.model)
	}
	if err == nil {
		var sn session.Snapshot
		if sn, err = k.Snapshot(); err == nil {
			err = k.Sync(context.Background(), sn.AsOfSeq)
		}
	}
	if err != nil {
		return Session{}, errors.Join(err, s.cfg.Root.RemoveAll(event.Folder(r.ID)))
	}
	r.Workspace = k.Workspace()
	s.keep(&r)
	s.cfg.Sessions.Mark(r.ID, r.mark(), r.Changed)
	f, err := s.feed(r.ID) // session_created
	if err != nil {
		return Session{}, err
	}
	f.Finish()
	return r.Session, nil
}

// Fork makes a session that goes on from where another is, with the id child or, if that
// is "", with a new one.
func (s *Service) Fork(ctx context.Context, id, child string) (Session, error) {
	k, rec, err := s.steer(ctx, id)
	if err != nil {
		return Session{}, err
	}
	if err := s.cfg.Sessions.Room(); err != nil {
		return Session{}, err
	}
	s.create.Lock()
	defer s.create.Unlock()
	now := now()
	if child == "" {
		child = newID("sess_", now)
	} else if _, err := s.cfg.Sessions.Find(child, k.Workspace()); !errors.Is(err, session.ErrNotFound) {
		return Session{}, errors.Join(api.Coded(http.StatusConflict, "exists", "there is a session %s already", child), err)
	}
	r := record{Session: rec}
	r.ID, r.ParentID, r.CreatedAt, r.UpdatedAt = child, id, now, now
	r.Status, r.LastTurnID, r.Usage = Active, "", SessionUsage{}
	r.touch(time.Now())
	if r.Mode, err = s.cfg.Sessions.Mode(id); err != nil { // it may have changed since
		return Session{}, err
	}
	if maySet(auth.FromContext(ctx), r.Mode) != nil {
		r.Mode = session.Work
	}
	if err := s.save(r); err != nil {
		return Session{}, err
	}
	k, err = s.cfg.Sessions.ForkInto(id, r.ID, r.Mode)
	if err == nil && r.SystemPrompt != "" {
		err = k.SetSystem(r.SystemPrompt)
	}
	if err != nil {
		return Session{}, err
	}
	s.keep(&r)
	s.cfg.Sessions.Mark(r.ID, r.mark(), r.Changed)
	f, err := s.feed(r.ID)
	if err != nil {
		return Session{}, err
	}
	f.Finish()
	return r.Session, nil
}
