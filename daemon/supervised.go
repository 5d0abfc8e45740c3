package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/systemd"
)

// supervised reports the state of this process to a service manager.
type supervised struct {
	systemd.Notifier
	log zerolog.Logger
}

// newSupervised returns that of this process. Nobody else gets the variables: what yaya starts
// has no business with the manager.
func newSupervised(log zerolog.Logger) (supervised, error) {
	n, err := systemd.New(os.Getenv, os.Getpid())
	return supervised{n, log}, err
}

// tell tells the service manager something. If it cannot be reached, it acts as it does with a
// service that is stuck; the log says why.
func (s supervised) tell(lines ...string) {
	if err := s.Tell(lines...); err != nil {
		s.log.Warn().Err(err).Msg("the service manager does not know how yaya is")
	}
}

// ready tells the service manager that yaya serves at an address.
func (s supervised) ready(base string) {
	s.tell(systemd.Ready, systemd.Status(fmt.Sprintf("yaya %s serves %s", Version(), base)))
}

// servesTimeout bounds a look whether yaya serves.
const servesTimeout = 10 * time.Second

// watchdog tells the service manager that yaya serves, as long as it does; end ends that.
func (f *front) watchdog(ctx context.Context) (end func()) {
	service := f.bridge.core.st.at.service
	every := service.Watchdog()
	if every == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			if f.restarts.draining.Load() {
				service.tell(systemd.Alive) // the drain has a bound of its own
			} else if err := f.probe(ctx, min(every, servesTimeout)); err == nil {
				service.tell(systemd.Alive)
			} else if ctx.Err() == nil && f.restarts.now().State != RestartRunning {
				service.log.Error().Err(err).Msg("yaya does not serve: the service manager restarts it if that goes on")
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		work.Wait()
	}
}

// probe asks yaya, as clients do, whether it is there.
func (f *front) probe(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	network, addr := "unix", f.in.web.Socket
	if addr == "" {
		if f.in.flags.remote() && f.in.local == f.in.bases[0] {
			return nil // over TLS alone, under names that lead elsewhere: there is nobody to ask
		}
		network, addr = "tcp", f.in.addrs[0]
		if local := f.in.listeners.LocalAddr(); local != "" {
			addr = local
		}
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/health", nil)
	if err != nil {
		return err
	}
	if network == "tcp" {
		req.Host = addr
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	err = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		err = errors.Join(err, fmt.Errorf("GET /health answers %s", resp.Status))
	}
	return err
}
