package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/gateway/cluster"
	"github.com/yaya-ai/yaya/internal/control"
	"github.com/yaya-ai/yaya/internal/journal"
)

// exportPoll is how often a followed log is looked at.
const exportPoll = 500 * time.Millisecond

func auditExportCommand(g *globals) *cobra.Command {
	var since, format string
	var follow bool
	c := &cobra.Command{
		Use: "export", Short: "Print every entry of the audit as a line, for another system",
		Long: `Print every entry of the audit as a line, for another system: oldest first, seals
included. jsonl is a JSON object a line; cef is ArcSight's Common Event Format.

With --follow it goes on with what is appended, until it is interrupted, and survives
restarts of the daemon. Lines that another machine keeps are an anchor: the audit
here cannot be changed without differing from them.

The chain is checked while it is read. The exit code is 1 if the log is damaged, was
cut, removed or replaced, and 0 when --follow is interrupted.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			write, ok := map[string]func(control.Audit) ([]byte, error){"jsonl": jsonLine, "cef": cefLine}[format]
			if !ok {
				return &usageError{c.CommandPath(), fmt.Errorf("--format is jsonl or cef, not %q", format)}
			}
			q := cluster.Query{Seals: true}
			if q.Since, err = moment(since, time.Now()); err != nil {
				return &usageError{c.CommandPath(), fmt.Errorf("--since: %w", err)}
			}
			p, err := g.paths()
			if err != nil {
				return err
			}
			root, err := os.OpenRoot(p.data)
			if errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("there is no data directory %s", p.data)
			}
			if err != nil {
				return fmt.Errorf("data directory: %w", err)
			}
			defer func() { err = errors.Join(err, root.Close()) }()
			damage := auditDamage(root) // found first: a log that is not whole is not followed
			err = exportAudit(c.Context(), journal.Root(root), q, follow && damage == nil, c.OutOrStdout(), write)
			return cmp.Or(damagedAt(root, err), damage)
		},
	}
	f := c.Flags()
	f.StringVar(&format, "format", "jsonl", "jsonl or cef")
	f.BoolVar(&follow, "follow", false, "go on with what is appended, until interrupted")
	f.StringVar(&since, "since", "", "from then on: RFC 3339, a date, or a duration ago such as 2h")
	return c
}

// exportAudit writes the entries that match, and with follow those to come, until ctx
// ends.
func exportAudit(ctx context.Context, fsys journal.FS, q cluster.Query, follow bool, w io.Writer, line func(control.Audit) ([]byte, error)) error {
	tail := cluster.NewTail(fsys)
	tick := time.NewTicker(exportPoll)
	defer tick.Stop()
	for {
		err := tail.Next(func(e control.Entry) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !q.Matches(e) {
				return nil
			}
			b, err := line(e.Audit())
			if err == nil {
				_, err = w.Write(append(b, '\n'))
			}
			return err
		})
		if err != nil && (!follow || ctx.Err() == nil) {
			return err
		}
		if !follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// jsonLine is an entry as one line of JSON.
func jsonLine(a control.Audit) ([]byte, error) {
	raw, err := json.Marshal(a)
	return plainJSON(raw), err
}

// cefHeader and cefValue escape what would end a field (CEF, "Character Encoding").
var (
	cefHeader = strings.NewReplacer(`\`, `\\`, `|`, `\|`, "\r", " ", "\n", " ")
	cefValue  = strings.NewReplacer(`\`, `\\`, `=`, `\=`, "\r", `\r`, "\n", `\n`)
)

// cefLine is an entry in the Common Event Format, version 0.
func cefLine(a control.Audit) ([]byte, error) {
	payload, err := jsonLine(a)
	if err != nil {
		return nil, err
	}
	var p struct {
		Payload json.RawMessage `json:"payload"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, err
	}
	at, err := time.Parse(control.TimeFormat, a.Time)
	if err != nil {
		return nil, err
	}
	severity := 5
	if a.Event == cluster.SealEvent {
		severity = 1
	}
	field := func(s string) string { return cefValue.Replace(shown(s)) }
	return fmt.Appendf(nil, "CEF:0|yaya|yaya|%s|%s|%s|%d|rt=%d externalId=%d suser=%s cs1Label=target cs1=%s cs2Label=payload cs2=%s",
		cefHeader.Replace(shown(yayaVersion())), cefHeader.Replace(shown(a.Event)), cefHeader.Replace(shown(strings.ReplaceAll(a.Event, "_", " "))), severity,
		at.UnixMilli(), a.Index, field(a.Actor), field(a.Target), cefValue.Replace(string(p.Payload))), nil
}

// shown replaces characters that would do something to a terminal, line ends apart,
// which the format escapes.
func shown(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || (unicode.IsPrint(r) && r != utf8.RuneError) {
			return r
		}
		return '·'
	}, s)
}
