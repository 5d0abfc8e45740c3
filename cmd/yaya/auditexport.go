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

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/journal"
)

// exportPoll is how often --follow checks the log for new entries.
const exportPoll = 500 * time.Millisecond

func auditExportCommand(g *daemon.Flags) *cobra.Command {
	var since, format string
	var follow bool
	c := &cobra.Command{
		Use: "export", Short: "Export the audit log, one entry per line",
		Long: `Export the audit log for another system: one entry per line, oldest first, including
seals. jsonl is one JSON object per line; cef is ArcSight's Common Event Format.

With --follow, the command keeps printing new entries until it is interrupted, even
across restarts of the daemon. A copy on another machine is an anchor: nobody can change
the log here without making it differ from that copy.

The hash chain is verified during export. The exit code is 1 if the log is damaged,
truncated, removed or replaced, and 0 when --follow is interrupted.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			write, ok := map[string]func(control.Audit) ([]byte, error){"jsonl": jsonLine, "cef": cefLine}[format]
			if !ok {
				return &usageError{c.CommandPath(), fmt.Errorf("--format must be jsonl or cef, not %q", format)}
			}
			q := control.Query{Seals: true}
			if q.Since, err = moment(since, time.Now()); err != nil {
				return &usageError{c.CommandPath(), fmt.Errorf("--since: %w", err)}
			}
			p, err := g.Paths()
			if err != nil {
				return err
			}
			root, err := os.OpenRoot(p.Data)
			if errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("there is no data directory %s", p.Data)
			}
			if err != nil {
				return fmt.Errorf("data directory: %w", err)
			}
			defer func() { err = errors.Join(err, root.Close()) }()
			damage := daemon.AuditDamage(root, true) // checked first: an incomplete log is not followed
			err = exportAudit(c.Context(), journal.Root(root), q, follow && damage == nil, c.OutOrStdout(), write)
			return cmp.Or(daemon.DamagedAt(root, err), damage)
		},
	}
	f := c.Flags()
	f.StringVar(&format, "format", "jsonl", "output `format`: jsonl or cef")
	f.BoolVar(&follow, "follow", false, "print new entries until interrupted")
	f.StringVar(&since, "since", "", "entries from this `time` on: RFC 3339, a date, or a duration ago such as 2h")
	return c
}

// exportAudit writes the matching entries. With follow, it then writes new ones until ctx ends.
func exportAudit(ctx context.Context, fsys journal.FS, q control.Query, follow bool, w io.Writer, line func(control.Audit) ([]byte, error)) error {
	tail := local.NewTail(fsys)
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

// jsonLine formats an entry as one line of JSON.
func jsonLine(a control.Audit) ([]byte, error) {
	raw, err := json.Marshal(a)
	return daemon.PlainJSON(raw), err
}

// cefHeader and cefValue escape the characters that end a field (CEF, "Character Encoding").
var (
	cefHeader = strings.NewReplacer(`\`, `\\`, `|`, `\|`, "\r", " ", "\n", " ")
	cefValue  = strings.NewReplacer(`\`, `\\`, `=`, `\=`, "\r", `\r`, "\n", `\n`)
)

// cefLine formats an entry in the Common Event Format, version 0.
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
	if a.Event == control.SealEvent {
		severity = 1
	}
	field := func(s string) string { return cefValue.Replace(shown(s)) }
	return fmt.Appendf(nil, "CEF:0|yaya|yaya|%s|%s|%s|%d|rt=%d externalId=%d suser=%s cs1Label=target cs1=%s cs2Label=payload cs2=%s",
		cefHeader.Replace(shown(daemon.Version())), cefHeader.Replace(shown(a.Event)), cefHeader.Replace(shown(strings.ReplaceAll(a.Event, "_", " "))), severity,
		at.UnixMilli(), a.Index, field(a.Actor), field(a.Target), cefValue.Replace(string(p.Payload))), nil
}

// shown replaces control characters that could affect a terminal. It keeps line ends, which the
// format escapes.
func shown(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || (unicode.IsPrint(r) && r != utf8.RuneError) {
			return r
		}
		return '·'
	}, s)
}
