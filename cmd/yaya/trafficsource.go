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

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/sse"
	"github.com/yaya-ai/yaya/internal/traffic"
)

// callSource is where the record of calls is read: the daemon, or its files.
type callSource interface {
	list(ctx context.Context, f traffic.Filter) (admin.CallPage, error)
	follow(ctx context.Context, f traffic.Filter, show func(*traffic.Record) error) error
}

// withCalls asks the daemon, or reads the files if there is none.
func withCalls(ctx context.Context, g *globals, f func(callSource) error) error {
	p, err := g.paths()
	if err != nil {
		return err
	}
	if b, ok := daemon(ctx, p); ok {
		defer b.client.CloseIdleConnections()
		return f(daemonCalls{b})
	}
	root, err := os.OpenRoot(p.data)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no data directory %s: nothing was recorded", p.data)
	}
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	defer func() { _ = root.Close() }()
	return f(fileCalls{root})
}

type daemonCalls struct{ b *backend }

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
	return page, d.b.api(ctx, http.MethodGet, "/api/traffic?"+q.Encode(), nil, &page)
}

func (d daemonCalls) follow(ctx context.Context, f traffic.Filter, show func(*traffic.Record) error) error {
	last := int64(0)
	return d.b.events(ctx, "/api/traffic/events?"+query(f).Encode(), func() error { // the stream is open: nothing is missed now
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
			return fmt.Errorf("yaya sent what is not a call: %w", err)
		}
		if r.ID <= last {
			return nil
		}
		return show(&r)
	})
}

var errNoReader = errors.New("nobody reads what is printed")

// events reads server-sent events until ctx is done or the daemon ends. opened is
// called once the stream is there.
func (b *backend) events(ctx context.Context, path string, opened func() error, each func(sse.Event) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://yaya"+path, nil)
	if err != nil {
		return err
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return quiet(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return b.refusal(ctx, resp)
	}
	if err := opened(); err != nil {
		return quiet(ctx, err)
	}
	r := sse.NewReader(resp.Body, maxAnswer)
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

// quiet is nil when the user has ended what failed.
func quiet(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // ended on purpose
	}
	return err
}

type fileCalls struct{ root *os.Root }

func (s fileCalls) list(ctx context.Context, f traffic.Filter) (page admin.CallPage, err error) {
	page.Calls, page.More, err = traffic.Read(ctx, s.root, f)
	return page, err
}

// readEvery is how often files are looked at for calls of a yaya that is no daemon,
// such as yaya mcp serve.
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
