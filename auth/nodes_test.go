package auth_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/internal/journal"
)

// twins are two nodes that share a log, with a clock each.
type twins struct {
	*world
	north, south *auth.Authority
	base         time.Time
	writes       time.Duration // how far the clock is ahead of the node that changes something
	ahead        map[*auth.Authority]time.Duration
}

// newTwins starts two nodes whose clocks are ahead by so much. Each writes that it has started.
func newTwins(t *testing.T, north, south time.Duration) *twins {
	t.Helper()
	w := &twins{world: newWorld(t), base: time.Now()}
	w.log.Close()
	dir := t.TempDir()
	clock := func(by time.Duration) func() time.Time { return func() time.Time { return w.base.Add(by) } }
	w.north, w.south = w.node("north", dir, 1, clock(north)), w.node("south", dir, 3, clock(south))
	w.ahead = map[*auth.Authority]time.Duration{w.north: north, w.south: south}
	var err error
	w.log, err = local.Open(journal.Root(w.root), local.Options{
		Projections: []control.Projection{w.north, w.south}, Now: func() time.Time { return w.base.Add(w.writes) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []*auth.Authority{w.north, w.south} {
		w.as(a)
		if err := a.Start(w.log); err != nil {
			t.Fatal(err)
		}
		if _, err := w.log.Append(t.Context(), control.Change{Event: "node_started", Actor: "owner", Target: "n"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// as has a node make the next change.
func (w *twins) as(a *auth.Authority) *auth.Authority {
	w.writes = w.ahead[a]
	return a
}

func (w *twins) enrollOn(made, used *auth.Authority, g gadget) auth.Token {
	w.t.Helper()
	inv, err := w.as(made).Invite(w.t.Context(), auth.LocalOwner, "", auth.DefaultScopes())
	if err != nil {
		w.t.Fatal(err)
	}
	r := g.registration()
	r.Code = inv.Code
	got, err := w.as(used).Register(w.t.Context(), "peer", r)
	if err != nil {
		w.t.Fatalf("a code of one node on another one: %v", err)
	}
	return got.Token
}

// CL-08: with clocks that differ by twenty minutes, codes and tokens of each node are good on the
// other one at once, end on both, and the node that is behind says so.
func TestClocksOfNodes(t *testing.T) {
	const off = 10 * time.Minute
	for what, ahead := range map[string][2]time.Duration{"north is ahead": {off, -off}, "south is ahead": {-off, off}} {
		t.Run(what, func(t *testing.T) {
			w := newTwins(t, ahead[0], ahead[1])
			both := []*auth.Authority{w.north, w.south}
			for i, pair := range [][2]*auth.Authority{{w.north, w.south}, {w.south, w.north}} {
				token := w.enrollOn(pair[0], pair[1], newGadget([]string{"phone", "tablet"}[i]))
				for range 2 {
					for _, a := range both {
						for _, at := range both {
							if _, err := at.VerifyToken(token.Token); err != nil {
								t.Fatalf("a token of another node is refused: %v", err)
							}
						}
						var err error
						if token, err = w.as(a).Refresh(t.Context(), token.Token); err != nil {
							t.Fatalf("a token of another node is not refreshed: %v", err)
						}
					}
				}
				if life := token.ExpiresAt.Sub(w.base); life > 24*time.Hour+off || life < 24*time.Hour-off {
					t.Errorf("a token lives for %v, want 24 hours within the difference of the clocks", life)
				}
			}
			behind := w.north
			if ahead[1] < 0 {
				behind = w.south
			}
			for _, a := range both {
				if err := a.ClockBehind(); (err != nil) != (a == behind) || err != nil && !strings.Contains(err.Error(), "20m0s behind") {
					t.Errorf("ClockBehind() = %v, want that the node which is behind is so by 20m0s", err)
				}
			}
			last := w.enrollOn(w.north, w.south, newGadget("last"))
			w.base = w.base.Add(24*time.Hour + 2*off + 2*time.Minute)
			for _, a := range both {
				if _, err := a.VerifyToken(last.Token); !errors.Is(err, auth.ErrToken) || !strings.Contains(err.Error(), "has expired") {
					t.Errorf("a day later: VerifyToken() = %v, want that it has expired", err)
				}
			}
		})
	}
}

// CL-10: nodes accept once what is good once: a challenge of one is refused by the other, also a
// used one, and a token that comes back after it was refreshed elsewhere ends its family on both.
func TestOnceAmongNodes(t *testing.T) {
	w := newTwins(t, 0, 0)
	g := newGadget("phone")
	first := w.enrollOn(w.north, w.south, g)
	const url = "wss://yaya.example/ws"
	there, here := w.south.NewChallenge(url), w.north.NewChallenge(url)
	sig, _, err := auth.SignChallenge(g.key, there.Bytes(), url, w.north.ServerID())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.north.Prove(here, first.Token, sig); !errors.Is(err, auth.ErrToken) {
		t.Errorf("the answer to a challenge of another node: %v, want it refused", err)
	}
	if _, err := w.south.Prove(there, first.Token, sig); err != nil {
		t.Fatal(err)
	}
	for _, a := range []*auth.Authority{w.north, w.south} {
		if _, err := a.Prove(there, first.Token, sig); !errors.Is(err, auth.ErrToken) {
			t.Errorf("a challenge that was answered: %v, want it refused", err)
		}
	}
	next, err := w.north.Refresh(t.Context(), first.Token)
	if err != nil {
		t.Fatal(err)
	}
	same, err := w.south.Refresh(t.Context(), first.Token)
	if err != nil {
		t.Fatalf("a refresh of the same token on another node at the same time: %v", err)
	}
	w.base = w.base.Add(time.Minute)
	if _, err := w.south.Refresh(t.Context(), first.Token); !errors.Is(err, auth.ErrToken) {
		t.Errorf("a token that was refreshed on another node before: %v, want it refused", err)
	}
	for _, token := range []auth.Token{first, next, same} {
		for _, a := range []*auth.Authority{w.north, w.south} {
			if _, err := a.VerifyToken(token.Token); !errors.Is(err, auth.ErrToken) {
				t.Errorf("a token of the family afterwards: %v, want it refused", err)
			}
		}
	}
}
