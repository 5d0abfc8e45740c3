package upstream

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

const (
	listTimeout = 20 * time.Second
	listKept    = 5 * time.Second // for servers that do not report changes
	maxEntries  = 5000
	maxEntry    = 256 << 10
)

// listing caches a list of the server.
type listing struct {
	mu      sync.Mutex // held during the request
	entries []jsonrpc.Object
	at      time.Time // zero: not cached
	of      *session
}

// Name implements [relay.Server].
func (p *Provider) Name() string { return p.cfg.Server.Name }

// Prefix implements [relay.Server].
func (p *Provider) Prefix() (string, bool) {
	info := p.Info()
	if info.Prefix == "" {
		return info.ID, info.Bare
	}
	return info.Prefix, info.Bare
}

func (p *Provider) mainSession() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.main
}

// Has implements [relay.Server].
func (p *Provider) Has(capability string) bool {
	s := p.mainSession()
	if s == nil {
		return false
	}
	whole, part, _ := strings.Cut(capability, ".")
	return s.peer.has(whole, part)
}

// Capabilities implements [relay.Server].
func (p *Provider) Capabilities() jsonrpc.Object {
	s := p.mainSession()
	if s == nil {
		return jsonrpc.Object{}
	}
	return s.peer.caps
}

// List implements [relay.Server]. It caches a list until the server reports a change, or only
// briefly if the server does not report changes.
func (p *Provider) List(ctx context.Context, k relay.Kind) ([]jsonrpc.Object, error) {
	s := p.mainSession()
	if s == nil {
		return nil, errAway
	}
	l := p.listing(k)
	l.mu.Lock()
	defer l.mu.Unlock()
	p.mu.Lock()
	at, of := l.at, l.of
	p.mu.Unlock()
	if of == s && !at.IsZero() && (s.peer.has(k.Needs, "listChanged") || time.Since(at) < listKept) {
		return l.entries, nil
	}
	asked := time.Now()
	p.mu.Lock()
	l.at, l.of = asked, s // a change after this point makes it stale again
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	raws, warnings, err := s.pages(ctx, k.Method, k.Member)
	if re, ok := errors.AsType[*jsonrpc.Error](err); ok && re.Code == jsonrpc.CodeMethodNotFound {
		raws, err = nil, nil
	}
	if err != nil {
		p.mu.Lock()
		l.at = time.Time{}
		p.mu.Unlock()
		return nil, err
	}
	for _, w := range warnings {
		p.degraded(w)
	}
	l.entries = make([]jsonrpc.Object, 0, min(len(raws), maxEntries))
	for _, raw := range raws {
		if len(raw) > maxEntry || len(l.entries) == maxEntries {
			p.degraded("its answer to " + k.Method + " is too large; the rest is left out")
			continue
		}
		if obj, err := jsonrpc.ParseObject(bytes.Clone(raw)); err == nil {
			l.entries = append(l.entries, capped(obj))
		}
	}
	return l.entries, nil
}

func (p *Provider) listing(k relay.Kind) *listing {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lists == nil {
		p.lists = map[string]*listing{}
	}
	l := p.lists[k.Method]
	if l == nil {
		l = new(listing)
		p.lists[k.Method] = l
	}
	return l
}

// listChanged makes the lists that a notification concerns stale.
func (p *Provider) listChanged(k relay.Kind) {
	p.mu.Lock()
	for _, of := range []relay.Kind{relay.Prompts, relay.Resources, relay.Templates} {
		if l := p.lists[of.Method]; of.Note == k.Note && l != nil {
			l.at = time.Time{}
		}
	}
	p.mu.Unlock()
	if p.cfg.Router != nil {
		p.cfg.Router.Changed(p.cfg.Server.Name, k)
	}
}

func (p *Provider) toolsChanged() {
	p.told.Add(1)
	p.mu.Lock()
	changed := p.signals.Changed
	p.mu.Unlock()
	if changed != nil {
		changed()
	}
}

func (p *Provider) degraded(msg string) {
	p.mu.Lock()
	degraded := p.signals.Degraded
	p.mu.Unlock()
	if degraded != nil {
		degraded(msg)
	}
}
