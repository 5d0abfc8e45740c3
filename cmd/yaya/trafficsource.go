package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/sse"
	"github.com/yaya-ai/yaya/internal/traffic"
)

// callSource reads the record of calls, from the daemon or from its files.
type callSource interface {
	list(ctx context.Context, f traffic.Filter) (admin.CallPage, error)
	follow(ctx context.Context, f traffic.Filter, show func(*traffic.Record) error) error
}

// withCalls calls f with the daemon as the source, or with the files if no daemon runs.
func withCalls(ctx context.Context, g *daemon.Flags, f func(callSource) error) error {
	p, err := g.Paths()
	if err != nil {
		return err
	}
	if b, ok := daemon.Reach(ctx, p); ok {
		defer b.Client.CloseIdleConnections()
		return f(daemonCalls{b})
	}
	root, err := os.OpenRoot(p.Data)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no data directory %s, so no calls were recorded", p.Data)
	}
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	defer func() { _ = root.Close() }()
	return f(fileCalls{root})
}

type daemonCalls struct{ b *daemon.Backend }

func query(f traffic.Filter) url.Values {
	q := url.Values{}
	set := func(name, v string) {
		if v != "" {
			q.Set(name, v)
		}
	}
	set("server", f.Server)
	set("tool", f.Tool)
	set("client", f.Client)
	if f.Errors {
		q.Set("errors", "true")
	}
	if f.Bodies {
		q.Set("full", "true")
	}
	if !f.Since.IsZero() {
		q.Set("since", f.Since.UTC().Format(time.RFC3339Nano))
	}
	if f.After > 0 {
		q.Set("after", strconv.FormatInt(f.After, 10))
	}
	return q
}

func (d daemonCalls) list(ctx context.Context, f traffic.Filter) (page admin.CallPage, err error) {
	q := query(f)
	q.Set("limit", strconv.Itoa(f.Limit))
	if f.Before > 0 {
		q.Set("before", strconv.FormatInt(f.Before, 10))
	}
	return page, d.b.API(ctx, http.MethodGet, "/api/traffic?"+q.Encode(), nil, &page)
}

func (d daemonCalls) follow(ctx context.Context, f traffic.Filter, show func(*traffic.Record) error) error {
	last := int64(0)
	return followEvents(ctx, d.b, "/api/traffic/events?"+query(f).Encode(), func() error { // the stream is open: from here on, no call is missed
		page, err := d.list(ctx, f)
		if err != nil {
			return err
		}
		for i := range page.Calls {
			if last = page.Calls[i].ID; show(&page.Calls[i]) != nil {
				return errNoReader
			}
		}
		return nil
	}, func(ev sse.Event) error {
		if ev.Name != "call" {
			return nil
		}
		var r traffic.Record
		if err := json.Unmarshal(ev.Data, &r); err != nil {
			return fmt.Errorf("malformed call from yaya: %w", err)
		}
		if r.ID <= last {
			return nil
		}
		return show(&r)
	})
}

var errNoReader = errors.New("the reader of the output is gone")

// followEvents reads server-sent events until ctx ends or the daemon stops. It calls opened
// once the stream is open.
func followEvents(ctx context.Context, b *daemon.Backend, path string, opened func() error, each func(sse.Event) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://yaya"+path, nil)
	if err != nil {
		return err
	}
	resp, err := b.Client.Do(req)
	if err != nil {
		return quiet(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return b.Refusal(ctx, resp)
	}
	if err := opened(); err != nil {
		return quiet(ctx, err)
	}
	r := sse.NewReader(resp.Body, daemon.MaxAnswer)
	for {
		ev, err := r.Next()
		if (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) && ctx.Err() == nil {
			return errors.New("yaya has stopped")
		}
		if err == nil {
			err = each(ev)
		}
		if err != nil {
			return quiet(ctx, err)
		}
	}
}

// quiet returns nil if err only says that the user ended the command.
func quiet(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the user ended it
	}
	return err
}

type fileCalls struct{ root *os.Root }

func (s fileCalls) list(ctx context.Context, f traffic.Filter) (page admin.CallPage, err error) {
	page.Calls, page.More, err = traffic.Read(ctx, s.root, f)
	return page, err
}

// readEvery is how often the files are read for new calls of a yaya that is not a daemon, such
// as yaya mcp serve.
const readEvery = 500 * time.Millisecond

func (s fileCalls) follow(ctx context.Context, f traffic.Filter, show func(*traffic.Record) error) error {
	tail, err := traffic.Follow(s.root, f)
	if err != nil {
		return err
	}
	page, err := s.list(ctx, f)
	if err != nil {
		return err
	}
	last := int64(0)
	tick := time.NewTicker(readEvery)
	defer tick.Stop()
	for calls := page.Calls; ; {
		for i := range calls {
			if calls[i].ID <= last {
				continue
			}
			last = calls[i].ID
			if err := show(&calls[i]); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if calls, _, err = tail.Next(); err != nil {
			return err
		}
	}
}
