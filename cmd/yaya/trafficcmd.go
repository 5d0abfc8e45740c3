package main

import (
	"bytes"
	"cmp"
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
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/sse"
	"github.com/yaya-ai/yaya/internal/traffic"
)

func trafficCommand(g *globals) *cobra.Command {
	var follow, asJSON bool
	var f traffic.Filter
	var since string
	c := &cobra.Command{
		Use: "traffic", Short: "Show the calls that pass through yaya",
		Long: `Show the calls that pass through yaya: who called which tool of which server, with
what, what came back, and how long it took. Calls are recorded for 7 days or 256 MiB,
secrets masked: see traffic.days, traffic.max_bytes and traffic.bodies (yaya config list).
It works beside a daemon and without one.`,
		Example: `  yaya traffic -f
  yaya traffic --errors --since 1h
  yaya traffic show 1234`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if f.Limit < 1 || f.Limit > traffic.MaxLimit {
				return &usageError{c.CommandPath(), fmt.Errorf("-n must be from 1 to %d", traffic.MaxLimit)}
			}
			if f.Since, err = moment(since, time.Now()); err != nil {
				return &usageError{c.CommandPath(), fmt.Errorf("--since: %w", err)}
			}
			f.Bodies = true
			return withCalls(c.Context(), g, func(src callSource) error {
				w := c.OutOrStdout()
				if !follow {
					page, err := src.list(c.Context(), f)
					if err != nil {
						return err
					}
					return printCalls(c, page, asJSON)
				}
				show := callLine
				if asJSON {
					show = callJSON
				}
				return src.follow(c.Context(), f, func(r *traffic.Record) error {
					_, err := io.WriteString(w, show(r))
					return err
				})
			})
		},
	}
	fl := c.Flags()
	fl.BoolVarP(&follow, "follow", "f", false, "go on with calls as they end")
	fl.StringVar(&f.Server, "server", "", "calls of that server")
	fl.StringVar(&f.Tool, "tool", "", "calls of that tool, by either of its names")
	fl.StringVar(&f.Client, "client", "", "calls by the client that calls itself so")
	fl.BoolVar(&f.Errors, "errors", false, "calls that failed")
	fl.StringVar(&since, "since", "", "calls from then on: RFC 3339, a date, or a duration ago such as 1h")
	fl.IntVarP(&f.Limit, "limit", "n", 50, "at most the last so many")
	fl.BoolVar(&asJSON, "json", false, "print JSON, with -f a line for each call")
	c.AddCommand(trafficShowCommand(g))
	return c
}

func trafficShowCommand(g *globals) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "show ID", Short: "Show all that is recorded of one call", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(strings.TrimPrefix(args[0], "#"), 10, 64)
			if err != nil || id < 1 {
				return &usageError{c.CommandPath(), fmt.Errorf("%q is not the id of a call: yaya traffic shows them", args[0])}
			}
			return withCalls(c.Context(), g, func(src callSource) error {
				page, err := src.list(c.Context(), traffic.Filter{After: id - 1, Before: id + 1, Limit: 1, Bodies: true})
				if err != nil {
					return err
				}
				if len(page.Calls) == 0 {
					return fmt.Errorf("there is no call %d in the record: the oldest are removed", id)
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), page.Calls[0])
				}
				_, err = io.WriteString(c.OutOrStdout(), callDetails(&page.Calls[0]))
				return err
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

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

func printCalls(c *cobra.Command, page admin.CallPage, asJSON bool) error {
	w := c.OutOrStdout()
	if asJSON {
		return printJSON(w, page.Calls)
	}
	var b strings.Builder
	for i := range page.Calls {
		b.WriteString(callLine(&page.Calls[i]))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	note := c.ErrOrStderr()
	if len(page.Calls) == 0 {
		fmt.Fprintln(note, "no calls are recorded that match")
	}
	if page.Why != "" {
		fmt.Fprintf(note, "arguments and results are not recorded, since %s: yaya config set traffic.bodies all\n", page.Why)
	}
	if n := page.Lost.Busy + page.Lost.Failed; n > 0 {
		fmt.Fprintf(note, "%d calls are missing since yaya was started: they came too fast, or could not be written; yaya's log has more\n", n)
	}
	return nil
}

func callJSON(r *traffic.Record) string {
	raw, err := json.Marshal(r)
	if err != nil { // cannot be: it was made of JSON
		return ""
	}
	return string(raw) + "\n"
}

// target is what a call was of.
func target(r *traffic.Record) string {
	name := r.Tool
	if r.Server != "" {
		name = r.Server + "/" + r.Tool
	}
	if r.Method != traffic.MethodTool && r.Method != r.Tool { // of an extension it is both
		name = r.Method + " " + name
	}
	return printable(name, 100)
}

func callTime(r *traffic.Record) string {
	at := r.Time.Local()
	if time.Since(at) > 12*time.Hour {
		return at.Format("2006-01-02 15:04:05")
	}
	return at.Format("15:04:05.000")
}

func took(r *traffic.Record) string {
	d := time.Duration(r.TookMS * float64(time.Millisecond))
	if d >= time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return strconv.FormatFloat(r.TookMS, 'f', 1, 64) + "ms"
}

// callLine is a call on one line.
func callLine(r *traffic.Record) string {
	who := cmp.Or(r.Client, r.Origin)
	if r.Principal != "" && r.Principal != "owner" {
		who += " (" + r.Principal + ")"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  #%d  %s  %s  %s  %s", callTime(r), r.ID, printable(who, 60), target(r), printable(r.Outcome, 20), took(r))
	if r.Arguments != "" {
		b.WriteString("  " + printable(r.Arguments, 160))
	}
	switch {
	case r.Error != "":
		b.WriteString("  → " + printable(r.Error, 160))
	case r.Result != "":
		b.WriteString("  → " + printable(resultText(r.Result), 160))
	default:
		fmt.Fprintf(&b, "  → %s", bytesOf(r.ResultBytes))
	}
	if r.Busy {
		b.WriteString("  (too busy to keep more)")
	}
	b.WriteByte('\n')
	return b.String()
}

// resultText is the text of a tool's result, or the result as it is.
func resultText(raw string) string {
	var res struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal([]byte(raw), &res) != nil || len(res.Content) == 0 {
		return raw
	}
	var parts []string
	for _, c := range res.Content {
		if c.Type == "text" {
			parts = append(parts, c.Text)
		} else {
			parts = append(parts, "["+c.Type+"]")
		}
	}
	return strings.Join(parts, " ")
}

func bytesOf(n int64) string {
	if n < 10_000 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// callDetails is all of a call.
func callDetails(r *traffic.Record) string {
	var b strings.Builder
	row := func(name, v string) {
		if v != "" {
			fmt.Fprintf(&b, "%-10s %s\n", name, printable(v, 1000))
		}
	}
	row("call", "#"+strconv.FormatInt(r.ID, 10))
	row("time", r.Time.Local().Format("2006-01-02 15:04:05.000 -0700"))
	row("took", took(r))
	row("method", r.Method)
	row("server", r.Server)
	row("tool", r.Tool)
	row("called", r.Name)
	row("outcome", r.Outcome)
	row("error", r.Error)
	row("approved", r.Approval)
	row("client", strings.TrimSpace(r.Client+" "+r.ClientVersion))
	row("origin", r.Origin)
	row("principal", r.Principal)
	row("session", r.Session)
	row("trace", r.Trace)
	body := func(name, text string, size int64) {
		fmt.Fprintf(&b, "\n%s, %s", name, bytesOf(size))
		switch {
		case text == "" && size > 0 && r.Busy:
			b.WriteString(": not recorded, there was too much traffic\n")
			return
		case text == "" && size > 0:
			b.WriteString(": not recorded (yaya config set traffic.bodies all)\n")
			return
		case text == "":
			b.WriteByte('\n')
			return
		}
		var pretty bytes.Buffer
		if json.Indent(&pretty, []byte(text), "", "  ") == nil {
			text = pretty.String()
		} else if r.Cut {
			b.WriteString(", of which the beginning is recorded")
		}
		b.WriteString(":\n" + feature.Clean(text, 256<<10) + "\n")
	}
	body("arguments", r.Arguments, r.ArgumentsBytes)
	body("result", r.Result, r.ResultBytes)
	return b.String()
}
