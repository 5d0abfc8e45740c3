package admin

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
)

// Limits of changes that wait.
const (
	maxChanges = 256
	changeLife = 10 * time.Minute
)

// Change is a change of an MCP server that waits to be applied. It says what will run,
// with plain values masked that look like secrets, and cannot be altered: another wish
// is another change.
type Change struct {
	ID      string          `json:"id"`
	Server  string          `json:"server"`
	Action  string          `json:"action" enum:"add,change"`
	Runs    string          `json:"runs" doc:"the command line or the URL; secrets are masked, but nothing that a shell would act on"`
	Config  json.RawMessage `json:"config" doc:"secrets masked"`
	Notes   []string        `json:"notes,omitempty"`
	By      string          `json:"by"`
	Expires time.Time       `json:"expires_at"`
}

type heldChange struct {
	Change
	secrets []string
	apply   func(context.Context) error
}

// changes are those that wait, in memory: a restart forgets them.
type changes struct {
	mu   sync.Mutex
	held map[string]heldChange
}

// expire forgets those whose time is over; mu is held.
func (c *changes) expire(now time.Time) {
	for id, h := range c.held {
		if !now.Before(h.Expires) {
			delete(c.held, id)
		}
	}
}

func (c *changes) hold(p Prepared, by string) (Change, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.expire(now)
	if len(c.held) >= maxChanges {
		return Change{}, api.Fail(http.StatusTooManyRequests, "%d changes wait already", len(c.held))
	}
	ch := Change{ID: "chg_" + rand.Text(), Server: p.Server, Action: "change", Runs: p.Runs, Config: p.Config, Notes: p.Notes, By: by, Expires: now.Add(changeLife).UTC()}
	if p.New {
		ch.Action = "add"
	}
	if c.held == nil {
		c.held = map[string]heldChange{}
	}
	c.held[ch.ID] = heldChange{ch, p.Secrets, p.Apply}
	return ch, nil
}

// get returns a change that waits. take forgets it as well: it is applied once at most.
func (c *changes) get(id string) (heldChange, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire(time.Now())
	h, ok := c.held[id]
	if !ok {
		return h, api.Fail(http.StatusNotFound, "no such change waits: it was applied, withdrawn or has expired")
	}
	return h, nil
}

func (c *changes) take(id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.held[id]; !ok {
		return api.Fail(http.StatusNotFound, "no such change waits: it was applied or withdrawn just now")
	}
	delete(c.held, id)
	return nil
}

func (c *changes) list() []Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire(time.Now())
	out := []Change{}
	for _, h := range c.held {
		out = append(out, h.Change)
	}
	slices.SortFunc(out, func(x, y Change) int { return cmp.Or(x.Expires.Compare(y.Expires), cmp.Compare(x.ID, y.ID)) })
	return out
}

// propose prepares a change of a server and keeps it until it is applied.
func (a *API) propose(ctx context.Context, name string, config json.RawMessage, revision string, isNew bool) (*outChange, error) {
	p, err := a.cfg.Servers.Prepare(name, config, revision)
	if err != nil {
		return nil, err
	}
	switch {
	case isNew && !p.New:
		return nil, api.Fail(http.StatusConflict, "there is a server %q already", name)
	case !isNew && p.New:
		return nil, api.Fail(http.StatusNotFound, "there is no server %q", name)
	}
	ch, err := a.keep(ctx, p)
	return &outChange{ch}, err
}

// proposed keeps a change of a server that there is until it is applied.
func (a *API) proposed(ctx context.Context, prepare func() (Prepared, error)) (*outChange, error) {
	p, err := prepare()
	if err != nil {
		return nil, err
	}
	ch, err := a.keep(ctx, p)
	return &outChange{ch}, err
}

func (a *API) keep(ctx context.Context, p Prepared) (Change, error) {
	if err := a.audited(ctx, "server_change_proposed", p.Server, map[string]string{"runs": p.Runs}); err != nil {
		return Change{}, err
	}
	return a.changes.hold(p, auth.FromContext(ctx).Actor())
}

func (a *API) changeRoutes() {
	type inChange struct {
		ID string `path:"id" maxLength:"128"`
	}
	type outChanges struct{ Body []Change }
	r := routes{a, "mcp", a.cfg.Servers != nil, "MCP servers"}
	handle(r, "POST", "/api/mcp/import", "importServers", api.For(auth.ConfigWrite), "Propose to import the servers of another client", http.StatusAccepted, func(ctx context.Context, in *struct {
		Body struct {
			Client string `json:"client" minLength:"1" maxLength:"128"`
		}
	},
	) (*outChanges, error) {
		all, err := a.cfg.Servers.Import(in.Body.Client)
		if err != nil {
			return nil, err
		}
		out := []Change{}
		for _, p := range all {
			ch, err := a.keep(ctx, p)
			if err != nil {
				return nil, err
			}
			out = append(out, ch)
		}
		return &outChanges{out}, nil
	})
	handle(r, "GET", "/api/mcp/changes", "listChanges", api.For(auth.ConfigRead), "List server changes that wait to be applied", http.StatusOK, func(context.Context, *none) (*outChanges, error) {
		return &outChanges{a.changes.list()}, nil
	})
	handle(r, "POST", "/api/mcp/changes/{id}/apply", "applyChange", api.For(auth.ConfigWrite), "Apply a change as proposed; it shows what will run, with secrets masked", http.StatusOK, func(ctx context.Context, in *inChange) (*outChange, error) {
		h, err := a.changes.get(in.ID)
		if err != nil {
			return nil, err
		}
		err = a.recorded(ctx, "server_changed", h.Server, map[string]string{"runs": h.Runs, "change": h.ID, "proposed_by": h.By}, func() error {
			if err := a.changes.take(in.ID); err != nil {
				return err
			}
			apply := func() error { return h.apply(ctx) }
			for _, name := range h.secrets { // audited as those of setSecret
				inner := apply
				apply = func() error { return a.recorded(ctx, "secret_set", name, nil, inner) }
			}
			if err := apply(); err != nil {
				if strings.Contains(err.Error(), strconv.Quote(h.Server)) {
					return err // it names the server
				}
				return fmt.Errorf("server %q: %w", h.Server, err)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		return &outChange{h.Change}, nil
	})
	handle(r, "DELETE", "/api/mcp/changes/{id}", "withdrawChange", api.For(auth.ConfigWrite), "Discard a change", http.StatusNoContent, func(_ context.Context, in *inChange) (*none, error) {
		return nil, a.changes.take(in.ID)
	})
}
