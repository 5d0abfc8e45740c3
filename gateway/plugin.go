package gateway

import (
	"context"
	"fmt"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// Manifest implements [plugin.Plugin].
func (*Server) Manifest() plugin.Manifest {
	return plugin.Manifest{Name: "web", Version: "0.1.0", Category: plugin.Adapter, AdapterID: "web"}
}

// Subscriptions implements [plugin.Plugin].
func (*Server) Subscriptions() []string { return nil }

// OnEvent implements [plugin.Plugin].
func (*Server) OnEvent(context.Context, event.Event, plugin.Context) error { return nil }

// OnLoad implements [plugin.Plugin]: it begins to serve.
func (s *Server) OnLoad(context.Context, plugin.Context) error {
	ctx, stop := context.WithCancel(context.Background())
	s.stop, s.done = stop, make(chan error, 1)
	go func() {
		err := s.Run(ctx)
		if err != nil && ctx.Err() == nil && s.cfg.OnFailure != nil {
			s.cfg.OnFailure(err)
		}
		s.done <- err
	}()
	return nil
}

// OnUnload implements [plugin.Plugin]: it drains and waits for what was asked.
func (s *Server) OnUnload(ctx context.Context, _ plugin.Context) error {
	if s.stop == nil {
		return nil
	}
	if s.cfg.BeforeDrain != nil {
		s.cfg.BeforeDrain()
	}
	s.stop()
	defer func() { s.stop = nil }()
	select {
	case err := <-s.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the gateway is still draining: %w", ctx.Err())
	}
}

// HealthCheck implements [plugin.HealthChecker].
func (s *Server) HealthCheck(context.Context, plugin.Context) plugin.HealthReport {
	at := s.Addr()
	if local := s.LocalAddr(); local != "" {
		at += ", and for this machine alone on " + local
	}
	return plugin.HealthReport{Status: plugin.Healthy, Summary: "listens on " + at}
}
