package session

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/yaya-ai/yaya/internal/journal"
)

// append writes one entry and applies it, if need be after a recovery; mu is held and the
// tape is open.
func (s *Session) append(kind string, payload any, meta Meta) (int64, error) {
	return s.appendIn("", kind, payload, meta)
}

// appendIn is append for an entry that holds in one epoch only; "" is any.
func (s *Session) appendIn(epoch, kind string, payload any, meta Meta) (int64, error) {
	if epoch != "" && epoch != s.st.epoch {
		return 0, fmt.Errorf("session %s: %w", s.id, ErrRecovered)
	}
	raw, err := json.Marshal(payload)
	if err != nil {
		return 0, fmt.Errorf("entry: %w", err)
	}
	raw = s.m.cfg.Secrets.ConcealJSON(raw)
	meta.Turn = cmp.Or(meta.Turn, s.st.turn)
	now := time.Now()
	b, err := members(kind, raw, meta, now)
	if err != nil {
		return 0, err
	}
	defer s.m.stalled(s.id, "write", now)
	id, err := s.j.Append(b)
	if errors.Is(err, journal.ErrFailed) {
		if err = s.recover(err); err == nil && epoch != "" {
			err = ErrRecovered
		}
		if err == nil {
			id, err = s.j.Append(b)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("session %s: %w", s.id, err)
	}
	s.latest = Entry{ID: id, Kind: kind, Payload: raw, Meta: meta, Date: now.UTC(), note: noteIn(payload, raw)}
	s.st.apply(s.latest)
	s.m.index.wrote(s.key(), s.j.Size(), now, s.settled(), func() string { return titleOf(s.latest) })
	s.grew(s.j.Size())
	return id, nil
}

// settled reports whether the session needs no [Manager.Repair]; mu is held. A queue does not
// count: it has a marker.
func (s *Session) settled() bool { return s.st.turn == "" && !s.st.owed && len(s.st.asks) == 0 }

// recover reopens a tape after its disk failed. Entries that had not reached the
// disk are lost, so the epoch changes and every reader starts over.
func (s *Session) recover(cause error) error {
	if _, err := s.j.Recover(); err != nil {
		return errors.Join(cause, err)
	}
	s.grew(0)                     // it is not what it was
	if s.j.Last() < s.j.First() { // not even its first anchor is left
		return s.startOver()
	}
	var o outline
	if err := s.j.Read(0, o.visit); err != nil {
		return err
	}
	st, err := s.m.derive(s.j, o)
	if err != nil {
		return err
	}
	s.st = st
	return s.newEpoch(fmt.Sprintf("recovered from: %v", cause))
}

// startOver begins the tape of a new session again.
func (s *Session) startOver() error {
	s.st = state{}
	if s.parent != nil {
		base, err := s.m.history(*s.parent, 0)
		if err != nil {
			return err
		}
		s.st.Projection = base.base()
	}
	if err := s.begin(); err != nil {
		return err
	}
	s.live, s.liveFrom = nil, s.liveFrom+int64(len(s.live))
	s.wake()
	return nil
}

func (s *Session) newEpoch(reason string) error {
	epoch := newEpoch()
	st, err := json.Marshal(struct {
		Epoch  string `json:"epoch"`
		Reason string `json:"reason"`
	}{epoch, reason})
	if err != nil {
		return err
	}
	if _, err := s.append(KindAnchor, Anchor{Name: anchorRepair, State: st}, Meta{}); err != nil {
		return err
	}
	s.live, s.liveFrom = nil, s.liveFrom+int64(len(s.live))
	s.wake()
	return nil
}

func newEpoch() string { return uuid.NewString()[:13] }
