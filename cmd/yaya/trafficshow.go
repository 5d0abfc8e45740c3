package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/traffic"
	"github.com/yaya-ai/yaya/internal/worded"
)

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
		fmt.Fprintln(note, "no recorded calls match")
	}
	if page.Why != "" {
		fmt.Fprintf(note, "arguments and results are not recorded, because %s (to record them: yaya config set traffic.bodies all)\n", page.Why)
	}
	if n := page.Lost.Busy + page.Lost.Failed; n > 0 {
		fmt.Fprintf(note, "%s missing since yaya's start: too many came at once, or the record could not be written (see yaya's log)\n", worded.Count(n, "call is", "calls are"))
	}
	return nil
}

// target returns the target of a call: its server and tool.
func target(r *traffic.Record) string {
	name := r.Tool
	if r.Server != "" {
		name = r.Server + "/" + r.Tool
	}
	if r.Method != traffic.MethodTool && r.Method != r.Tool { // for an extension, the method names both
		name = r.Method + " " + name
	}
	return daemon.Printable(name, 100)
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

// callLine formats a call on one line.
func callLine(r *traffic.Record) string {
	who := cmp.Or(r.Client, r.Origin)
	if r.Principal != "" && r.Principal != "owner" {
		who += " (" + r.Principal + ")"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  #%d  %s  %s  %s  %s", callTime(r), r.ID, daemon.Printable(who, 60), target(r), daemon.Printable(r.Outcome, 20), took(r))
	if r.Arguments != "" {
		b.WriteString("  " + daemon.Printable(r.Arguments, 160))
	}
	switch {
	case r.Error != "":
		b.WriteString("  → " + daemon.Printable(r.Error, 160))
	case r.Result != "":
		b.WriteString("  → " + daemon.Printable(resultText(r.Result), 160))
	default:
		fmt.Fprintf(&b, "  → %s", bytesOf(r.ResultBytes))
	}
	if r.Busy {
		b.WriteString("  (too busy to keep more)")
	}
	b.WriteByte('\n')
	return b.String()
}

// resultText returns the text of a tool's result, or the unchanged result if it has no text.
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

// callDetails formats the full record of a call.
func callDetails(r *traffic.Record) string {
	var b strings.Builder
	row := func(name, v string) {
		if v != "" {
			fmt.Fprintf(&b, "%-10s %s\n", name, daemon.Printable(v, 1000))
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
			b.WriteString(": not recorded because of too much traffic\n")
			return
		case text == "" && size > 0:
			b.WriteString(": not recorded (yaya config set traffic.bodies all, or the variable YAYA_TRAFFIC__BODIES where that is set)\n")
			return
		case text == "":
			b.WriteByte('\n')
			return
		}
		var pretty bytes.Buffer
		if json.Indent(&pretty, []byte(text), "", "  ") == nil {
			text = pretty.String()
		} else if r.Cut {
			b.WriteString(", of which only the beginning is recorded")
		}
		b.WriteString(":\n" + feature.Clean(text, 256<<10) + "\n")
	}
	body("arguments", r.Arguments, r.ArgumentsBytes)
	body("result", r.Result, r.ResultBytes)
	return b.String()
}
