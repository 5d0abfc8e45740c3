package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/gateway/sessions"
	"github.com/yaya-ai/yaya/kernel/budget"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/plugins/strategy_coder"
)

// chatAPI is the API of chat sessions with the folder that it works in.
type chatAPI struct {
	*sessions.Service
	root *os.Root
	once sync.Once
}

// Close ends it; it may be called more than once.
func (c *chatAPI) Close() {
	c.once.Do(func() {
		c.Service.Close()
		_ = c.root.Close() // it was read from, and written to through files of their own
	})
}

// openChats makes the API of chat sessions.
func openChats(b *bridge) (*chatAPI, error) {
	c := b.core
	at, k := c.st.at, c.kernel
	root, err := at.data.OpenRoot("sessions")
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	cfg := sessions.Config{
		Root: root, Bus: k.Bus, Sessions: k.Sessions, Loop: k.Loop, Approvals: k.Approvals, Artifacts: k.Artifacts, Secrets: at.secrets,
		Strategy: strategy_coder.ID, Price: prices{at.settings}.of, HasStrategy: k.Plugins.HasStrategy, Models: k, Version: Version(), Log: at.log,
		MayUse: c.st.mayUse, Trusted: c.gate.Trusted, Audit: c.st.audit(), Undo: c.undoLast, Closed: c.shell.End,
		Servers: b.mcp.Offers(),
	}
	if n := c.st.cluster(); n != nil {
		cfg.Nodes = n.forward
	}
	s, err := sessions.New(cfg)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	k.SetApprovalTimeout(s.ApprovalTimeout)
	k.OnUndriven(s.Prepare)
	k.SetClients(clientsOf(c, s))
	return &chatAPI{Service: s, root: root}, nil
}

// WithChats runs f with an API of chat sessions, and of what a chat shows beside them, of this process's
// own, which works on the data directory alone meanwhile.
func WithChats(ctx context.Context, g *Flags, workspace string, f func(http.Handler) error) error {
	return WithoutDaemon(ctx, g, AppOptions{Workspace: workspace, Agents: true, Log: zerolog.Nop(), lock: true}, func(a *App) error {
		chats, err := openChats(a.bridge)
		if err != nil {
			return err
		}
		defer chats.Close()
		cfg, done, err := a.beside(ctx)
		if err != nil {
			return err
		}
		defer done()
		mux := http.NewServeMux()
		mux.Handle("/v1/", chats)
		mux.Handle("/api/", admin.New(cfg))
		return f(mux)
	})
}

// SpentToday returns what all sessions have cost today, in US dollars.
func (p Paths) SpentToday() (usd float64, err error) {
	data, err := os.OpenRoot(p.Data)
	if err != nil {
		return 0, err
	}
	defer func() { _ = data.Close() }() // nothing is written
	return budget.Today(data, time.Now())
}

// prices are those of the configuration.
type prices struct{ settings *config.Store }

// of returns the cost of a model's tokens by input_price and output_price of the provider that
// has the model, which are in US dollars for a million.
func (p prices) of(model string, u event.Usage) float64 {
	for _, i := range p.settings.Providers().ListInstances() {
		if model == "" || i.Text("model") != model {
			continue
		}
		per := func(field string) float64 {
			var x float64
			if raw, ok := i.Config[field]; !ok || json.Unmarshal(raw, &x) != nil {
				return 0
			}
			return x
		}
		return (per("input_price")*float64(u.Input) + per("output_price")*float64(u.Output)) / 1e6
	}
	return 0
}
