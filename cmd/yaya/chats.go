package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/gateway/sessions"
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

// chats makes the API of chat sessions.
func (a *app) chats(data *os.Root) (*chatAPI, error) {
	root, err := data.OpenRoot("sessions")
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	k := a.kernel
	s, err := sessions.New(sessions.Config{
		Root: root, Bus: k.Bus, Sessions: k.Sessions, Loop: k.Loop, Approvals: k.Approvals, Artifacts: k.Artifacts, Secrets: a.secrets,
		Strategy: strategy_coder.ID, Price: a.price, HasStrategy: k.Plugins.HasStrategy, Version: yayaVersion(), Log: a.log,
		MayUse: a.mayUse, Trusted: a.gate.Trusted,
	})
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	a.v1.Store(s)
	return &chatAPI{Service: s, root: root}, nil
}

// approvalTimeout is how long asks of a session wait that has a time of its own.
func (a *app) approvalTimeout(session string) time.Duration {
	if s := a.v1.Load(); s != nil {
		return s.ApprovalTimeout(session)
	}
	return 0
}

// price is what a model's tokens cost by the configuration: input_price and
// output_price of the provider that has the model, in US dollars for a million.
func (a *app) price(model string, u event.Usage) float64 {
	for _, i := range a.kernel.Settings.Providers().ListInstances() {
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
