package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/sse"
)

// sseTransport is HTTP+SSE of 2024-11-05: one stream carries all messages from the server, and
// requests go to an endpoint that the first event names.
type sseTransport struct {
	*mux
	http *httpTransport // for requests, redirects and error texts
	end  *url.URL

	cancel context.CancelFunc
	over   chan struct{}
}

func dialSSE(ctx context.Context, rt http.RoundTripper, rawURL string, headers map[string]string, dropped *atomic.Uint64, in incoming, at room) (*sseTransport, error) {
	h, err := newHTTP(rt, rawURL, headers, dropped, in, at)
	if err != nil {
		return nil, err
	}
	t := &sseTransport{http: h, over: make(chan struct{})}
	t.mux = newMux(dropped, in, func(msg []byte) {
		h.work.Go(func() { _ = t.send(h.ctx, msg) })
	})
	// The stream lives longer than the dial.
	life, cancel := context.WithCancel(h.ctx)
	t.cancel = cancel
	stop := context.AfterFunc(ctx, cancel)
	req := newRequest(life, http.MethodGet, h.url, h.headers())
	req.Header.Set("Accept", "text/event-stream")
	resp, err := h.client.Do(req)
	if err != nil {
		h.cancel()
		return nil, h.classify(ctx, err)
	}
	fail := func(err error) (*sseTransport, error) {
		h.cancel()
		_ = resp.Body.Close()
		return nil, err
	}
	if resp.StatusCode != http.StatusOK || mediaTypeOf(resp) != "text/event-stream" {
		if resp.StatusCode != http.StatusOK {
			return fail(&statusError{code: resp.StatusCode})
		}
		return fail(fmt.Errorf("the server answered with %q instead of an event stream", cut.Text(mediaTypeOf(resp), 64)))
	}
	fill := &filler{room: at}
	r := fill.events(life, resp.Body)
	for t.end == nil {
		ev, err := r.Next()
		if err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return fail(fmt.Errorf("the event stream ended before it named its endpoint: %w", err))
		}
		if ev.Name != "endpoint" {
			continue
		}
		end, err := h.url.Parse(string(ev.Data))
		if err != nil || end.Scheme != h.url.Scheme || end.Host != h.url.Host {
			return fail(errors.New("the event stream names an endpoint of another origin; yaya does not use it"))
		}
		t.end = end
	}
	fill.drop()
	if !stop() { // ctx ended in the meantime and cancelled the stream
		return fail(ctx.Err())
	}
	go func() {
		defer close(t.over)
		defer func() { _ = resp.Body.Close() }()
		err := t.read(life, r, fill)
		fill.drop()
		t.fail(fmt.Errorf("the event stream ended: %w", err))
	}()
	return t, nil
}

// read reads events until an error, which it returns; it never returns nil. ctx bounds waiting
// for room.
func (t *sseTransport) read(ctx context.Context, r *sse.Reader, fill *filler) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = t.in.panicked(v)
		}
	}()
	for err == nil {
		var ev sse.Event
		ev, err = r.Next()
		switch {
		case errors.Is(err, sse.ErrTooLarge), errors.Is(err, errTooLarge):
			err = t.skip(r, fill, ev.Data, tooLarge(fill.limit))
		case errors.Is(err, errNoRoom):
			err = t.skip(r, fill, ev.Data, err)
		case err == nil && (ev.Name == "" || ev.Name == "message"):
			err = t.whole(ctx, fill, ev.Data)
		case err == nil:
			fill.drop()
		}
		if err == nil {
			err = t.enough()
		}
	}
	return err
}

// whole delivers a complete event.
func (t *sseTransport) whole(ctx context.Context, fill *filler, data []byte) error {
	buf, file := fill.take()
	if file != nil {
		var err error
		if buf, err = file.handOut(ctx, t.late, t.lost); buf == nil {
			return err
		}
		data = buf.B
	}
	return t.dispatch(data, buf)
}

// skip drops an event that is too large or for which there is no room: the call that it answers
// fails.
func (t *sseTransport) skip(r *sse.Reader, fill *filler, start []byte, why error) error {
	head := bytes.Clone(start[:min(len(start), glimpsed)])
	if file := fill.file; file != nil && file.size > 0 {
		var err error
		if head, _, err = file.ends(); err != nil {
			return err
		}
	}
	fill.drop()
	known := t.lost(head, nil, why)
	tail, err := r.Skip(glimpsed)
	if err == nil && !known {
		t.lost(head, tail, why)
	}
	return err
}

func (t *sseTransport) roundTrip(ctx context.Context, req *request) (reply, error) {
	p, err := t.add(req)
	if err != nil {
		return reply{}, notSent(err)
	}
	defer t.drop(req.id, p)
	if err := t.send(ctx, req.body); err != nil {
		return reply{}, err
	}
	return wait(ctx, p, req)
}

func (t *sseTransport) send(ctx context.Context, msg []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	resp, err := t.http.post(ctx, t.end, msg, nil, new(rawBody))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode/100 != 2 {
		return &statusError{code: resp.StatusCode}
	}
	return nil
}

func (t *sseTransport) copies() bool { return false }

func (t *sseTransport) done() <-chan struct{} { return t.over }

func (t *sseTransport) close(context.Context) {
	t.cancel()
	<-t.over
	t.http.cancel()
	t.http.work.Close()
}
