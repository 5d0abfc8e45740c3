package loop_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/internal/journal/journaltest"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/session"
)

// mover is an owner of all sessions until another node is.
type mover struct {
	session.Owner
	by string
}

func (*mover) Hold(context.Context, string, string) error { return nil }

func (o *mover) Elsewhere(context.Context, string) string { return o.by }

func (*mover) Grew(string, session.File) {}

func (*mover) Kept(context.Context, string, session.File) error { return nil }

func (*mover) Copied(context.Context, string, []session.File) (bool, error) { return true, nil }

// CL-04: sessions that another node has taken over before their queue went on do not hold up the others.
func TestMovedSessionsHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owner := &mover{}
		h := &history{t: t, chance: &chance{r: rand.New(rand.NewPCG(1, 2))}, disk: journaltest.NewDisk(), owner: owner, turns: map[string]bool{}, worked: map[string]int{}} //nolint:gosec // a test that can be repeated
		p := h.begin(0)
		defer h.end(p, new(sync.WaitGroup))
		open := func(id string) *session.Session {
			t.Helper()
			s, err := p.m.Open(id, "")
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		var moved []*session.Session
		for i := range loop.ResumeAtOnce {
			moved = append(moved, open(fmt.Sprint("moved", i)))
		}
		owner.by = "north"
		for _, s := range moved {
			if err := p.m.GiveUp(s.ID()); err != nil {
				t.Fatal(err)
			}
			p.l.Continue(s)
		}
		owner.by = ""
		s := open("stays")
		sn, err := s.Snapshot()
		if err == nil {
			_, err = s.SetQueue([]session.Prompt{{ID: "q", Text: "next"}}, sn.Epoch)
		}
		if err != nil {
			t.Fatal(err)
		}
		p.l.Continue(s)
		time.Sleep(time.Hour)
		synctest.Wait() // orders what the model wrote before the look at it
		if h.worked["next"] != 1 {
			t.Errorf("%d turns began with the prompt of the session that stays, want one", h.worked["next"])
		}
	})
}
