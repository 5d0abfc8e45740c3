package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// detailOf reads the provider's own part of a status, which is typed in the
// daemon and plain JSON when it came over the socket.
func detailOf(st feature.Status) upstream.Detail {
	if d, ok := st.Detail.(upstream.Detail); ok {
		return d
	}
	var d upstream.Detail
	if raw, err := json.Marshal(st.Detail); err == nil {
		_ = json.Unmarshal(raw, &d) // a daemon of another version says less
	}
	return d
}

// printable makes text that came from elsewhere safe for a terminal, on one
// line.
func printable(s string, limit int) string {
	return strings.NewReplacer("\n", `\n`, "\t", " ").Replace(feature.Clean(s, limit))
}

// serverTable writes the servers as a table.
func serverTable(w io.Writer, r report) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "SERVER\tTRANSPORT\tSTATE\tTOOLS\tSTART\tRESTARTS\tCALLS\tMEDIAN")
	for _, s := range r.Servers {
		d := detailOf(s)
		start, median := "-", "-"
		if s.StartTook > 0 {
			start = s.StartTook.Round(time.Millisecond).String()
		}
		if d.Calls > 0 {
			median = fmt.Sprintf("%.1fms", d.MedianMS)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%d\t%s\t%d\t%d\t%s\n", printable(s.ID, 40), d.Transport, s.State, s.Tools, start, s.Restarts, d.Calls, median)
	}
	for _, s := range r.Disabled {
		fmt.Fprintf(tw, "%s\t%s\tdisabled\t0\t-\t0\t0\t-\n", printable(s.Name, 40), s.Transport)
	}
	for _, s := range r.Invalid {
		fmt.Fprintf(tw, "%s\t-\t%s\t0\t-\t0\t0\t-\n", printable(s.Name, 40), s.State)
	}
	return tw.Flush()
}

// troubles explains what does not work: the server, the cause, the remedy.
func troubles(w io.Writer, r report) {
	for _, n := range r.Refused {
		fmt.Fprintf(w, "\n%s was not taken over, and what was read before holds: %s\n", printable(n.File, 300), printable(n.Error, 1000))
	}
	for _, s := range r.Invalid {
		fmt.Fprintf(w, "\n%s is not started: %s\n  configured in %s\n", printable(s.Name, 40), printable(s.Error, 1000), s.File)
	}
	for _, s := range r.Servers {
		why := s.Reason
		if why == "" && s.LastError != "" && s.State != feature.Ready { // it is over
			why = "last failure: " + s.LastError
		}
		if why == "" {
			continue
		}
		d := detailOf(s)
		fmt.Fprintf(w, "\n%s is %s: %s\n  %s\n", printable(s.ID, 40), s.State, printable(why, 1000), printable(d.Endpoint, 300))
		if lines := lastLines(d.Stderr); len(lines) > 0 && s.State != feature.Installing {
			fmt.Fprintln(w, "  its last words on standard error:")
			for _, line := range lines {
				fmt.Fprintf(w, "    %s\n", line)
			}
		}
	}
}

// lastLines are the last lines of what a server has said, safe for a terminal.
func lastLines(stderr string) []string {
	if stderr = strings.TrimSpace(stderr); stderr == "" {
		return nil
	}
	lines := strings.Split(stderr, "\n")
	lines = lines[max(0, len(lines)-8):]
	for i := range lines {
		lines[i] = printable(lines[i], 300)
	}
	return lines
}

// width is how many characters fit on a line.
func width(out io.Writer) int {
	if f, ok := out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 20 { //nolint:gosec // a descriptor fits
			return w
		}
	}
	return 80
}

// watchTable draws the table again and again until every server has started
// once, with the last line of each that installs.
func watchTable(ctx context.Context, a *app, out io.Writer) {
	late := time.After(25 * time.Second)
	drawn, shown := 0, ""
	for {
		var b strings.Builder
		r := a.report("", a.configured)
		if err := serverTable(&b, r); err != nil {
			return
		}
		over := settled(r.Servers)
		for _, s := range r.Servers {
			if s.State == feature.Installing { // on one line, which is counted
				fmt.Fprintln(&b, printable("  "+s.ID+" is installing: "+s.Reason, width(out)-1))
			}
		}
		if text := b.String(); text != shown {
			if drawn > 0 {
				fmt.Fprintf(out, "\x1b[%dA\x1b[J", drawn)
			}
			drawn, shown = strings.Count(text, "\n"), text
			fmt.Fprint(out, text)
		}
		if over || (late == nil && !installs(r.Servers)) {
			troubles(out, r)
			fmt.Fprintln(out)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-late:
			late = nil
		case <-time.After(150 * time.Millisecond):
		}
	}
}
