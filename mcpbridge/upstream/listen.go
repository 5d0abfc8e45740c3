package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// subscribe requests the notifications that concern no request: with a GET stream in the legacy
// era over HTTP, with subscriptions/listen in the modern one. It renews the clients'
// subscriptions to resources from an earlier session.
func (s *session) subscribe() {
	if s.peer.Era == servers.EraModern {
		s.work.Go(s.listen)
		return
	}
	s.hear()
	if uris := s.p.subscribed(); len(uris) > 0 {
		s.work.Go(func() {
			for _, uri := range uris {
				ctx, cancel := context.WithTimeout(s.life, listTimeout)
				_, err := s.ask(ctx, methodSubscribe, uriParams(uri))
				cancel()
				if err != nil {
					s.p.degraded("a subscription could not be renewed: " + err.Error())
				}
			}
		})
	}
}

// hearTimeout bounds how long a server may take to open the stream for its own requests.
const hearTimeout = 2 * time.Second

// hear opens the GET stream of a legacy session over HTTP. The channel is closed
// when the server has answered.
func (s *session) hear() <-chan struct{} {
	if h, ok := s.t.(*httpTransport); ok && s.peer.Era == servers.EraLegacy {
		return h.listen()
	}
	open := make(chan struct{})
	close(open)
	return open
}

// heard waits until the server can ask questions: without an open stream, a question is lost.
func (s *session) heard(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, hearTimeout)
	defer cancel()
	select {
	case <-s.hear():
	case <-ctx.Done():
	}
}

// opened clears the request that opened the session.
func (s *session) opened() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = nil
}

func uriParams(uri string) []byte {
	return append(jsonrpc.AppendString([]byte(`{"uri":`), uri), '}')
}

// filter returns the notifications to request from a modern server; nil if there are none.
func (s *session) filter() []byte {
	f := map[string]any{}
	for part, capability := range map[string]string{"toolsListChanged": "tools", "promptsListChanged": "prompts", "resourcesListChanged": "resources"} {
		if s.peer.has(capability, "listChanged") {
			f[part] = true
		}
	}
	if uris := s.p.subscribed(); len(uris) > 0 {
		f["resourceSubscriptions"] = uris
	}
	if len(f) == 0 {
		return nil
	}
	out, err := json.Marshal(map[string]any{"notifications": f})
	if err != nil {
		return nil
	}
	return out
}

// listen keeps a subscription of the modern era open, and opens a new one when the filter
// changes.
func (s *session) listen() {
	for wait := time.Second; s.life.Err() == nil; wait = min(2*wait, time.Minute) {
		s.mu.Lock()
		s.asking = s.wanted
		s.mu.Unlock()
		filter := s.filter()
		if filter == nil {
			s.acknowledged()
			select {
			case <-s.relist:
				continue
			case <-s.life.Done():
				return
			case <-s.t.done():
				return
			}
		}
		begun := time.Now()
		ctx, cancel := context.WithCancel(s.life)
		over := make(chan error, 1)
		go func() {
			// The answer comes when the server ends the subscription; until then, the transport
			// delivers the notifications.
			_, err := s.ask(ctx, methodListen, filter)
			over <- err
		}()
		var err error
		again := false
		select {
		case err = <-over:
		case <-s.relist:
			cancel()
			err = <-over // it was cancelled: nothing to report
			again = true
		}
		cancel()
		if again {
			wait = time.Second
			continue
		}
		if re, ok := errors.AsType[*jsonrpc.Error](err); ok && re.Code == jsonrpc.CodeMethodNotFound {
			return
		}
		if time.Since(begun) > time.Minute {
			wait = time.Second
		}
		select {
		case <-s.life.Done():
		case <-s.t.done():
			return
		case <-s.relist:
		case <-time.After(wait):
		}
	}
}

// acknowledged records that the server has accepted the subscription's filter.
func (s *session) acknowledged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.granted = s.asking
	close(s.acked)
	s.acked = make(chan struct{})
}

// resubscribe applies a changed filter, and waits until the server has acknowledged it.
func (s *session) resubscribe(ctx context.Context) {
	s.mu.Lock()
	s.wanted++
	mine := s.wanted
	s.mu.Unlock()
	select {
	case s.relist <- struct{}{}:
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, hearTimeout)
	defer cancel()
	for {
		s.mu.Lock()
		done, acked := s.granted >= mine, s.acked
		s.mu.Unlock()
		if done {
			return
		}
		select {
		case <-acked:
		case <-ctx.Done():
			return
		}
	}
}

// subscribed returns the resources that clients have subscribed to.
func (p *Provider) subscribed() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]string, 0, len(p.subs))
	for uri := range p.subs {
		out = append(out, uri)
	}
	slices.Sort(out)
	return out
}

// Subscribe implements [relay.Server].
func (p *Provider) Subscribe(ctx context.Context, uri string) error {
	return p.follow(ctx, uri, true)
}

// Unsubscribe implements [relay.Server].
func (p *Provider) Unsubscribe(ctx context.Context, uri string) error {
	return p.follow(ctx, uri, false)
}

const maxSubscriptions = 1024 // resources of one server

func (p *Provider) follow(ctx context.Context, uri string, on bool) error {
	p.mu.Lock()
	s := p.main
	full := on && len(p.subs) >= maxSubscriptions
	if on && !full {
		p.subs[uri] = struct{}{}
	} else {
		delete(p.subs, uri)
	}
	p.mu.Unlock()
	switch {
	case full:
		return errors.New("too many resources of this server are subscribed to")
	case s == nil:
		return errStopped
	case s.peer.Era == servers.EraModern:
		s.resubscribe(ctx)
		return nil
	}
	method := methodUnsubscribe
	if on {
		method = methodSubscribe
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	_, err := s.ask(ctx, method, uriParams(uri))
	if err != nil && on {
		p.mu.Lock()
		delete(p.subs, uri)
		p.mu.Unlock()
	}
	return err
}

// updated handles notifications/resources/updated.
func (p *Provider) updated(params []byte) {
	obj, err := jsonrpc.ParseObject(params)
	uri, ok := obj.String("uri")
	if err != nil || !ok {
		p.stats.dropped.Add(1)
		return
	}
	if p.cfg.Router != nil {
		p.cfg.Router.Updated(p.cfg.Server.Name, uri, note{noteUpdated, params}.passedOn().params)
	}
}

func (p *Provider) message(to tenant, n note) {
	if p.cfg.Router != nil {
		p.cfg.Router.Message(p.cfg.Server.Name, to.principal, to.client, n.method, n.params)
	}
}

func (p *Provider) standing(client string) relay.Peer {
	if p.cfg.Standing == nil {
		return nil
	}
	return p.cfg.Standing(client)
}
