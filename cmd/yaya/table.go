package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/feature"
)

// serverTable prints the servers as a table.
func serverTable(w io.Writer, r daemon.Report) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	packaged := slices.ContainsFunc(r.Servers, func(s feature.Status) bool { return daemon.DetailOf(s).Package != "" })
	last := func(text string) string { // a column that is there for servers of packages alone
		if !packaged {
			return ""
		}
		return "\t" + daemon.Printable(text, 40)
	}
	fmt.Fprintln(tw, "SERVER\tTRANSPORT\tSTATE\tTOOLS\tSTART\tRESTARTS\tCALLS\tMEDIAN"+last("PACKAGE"))
	for _, s := range r.Servers {
		d := daemon.DetailOf(s)
		start, median := "-", "-"
		if s.StartTook > 0 {
			start = s.StartTook.Round(time.Millisecond).String()
		}
		if d.Calls > 0 {
			median = fmt.Sprintf("%.1fms", d.MedianMS)
		}
		state := string(s.State)
		if n := len(d.Denied); n > 0 {
			state += fmt.Sprintf(", kept from %d", n)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%d\t%s\t%d\t%d\t%s%s\n", daemon.Printable(s.ID, 40), reached(s), state, s.Tools, start, s.Restarts, d.Calls, median, last(cmp.Or(d.Package, "-")))
	}
	for _, s := range r.Disabled {
		fmt.Fprintf(tw, "%s\t%s\tdisabled\t0\t-\t0\t0\t-%s\n", daemon.Printable(s.Name, 40), s.Transport, last("-"))
	}
	for _, s := range r.Invalid {
		fmt.Fprintf(tw, "%s\t-\t%s\t0\t-\t0\t0\t-%s\n", daemon.Printable(s.Name, 40), s.State, last("-"))
	}
	return tw.Flush()
}

// reached says how a server is reached: over a transport, or on another node of the cluster.
func reached(s feature.Status) string {
	if d := daemon.DetailOf(s); d.Node != "" {
		return "@" + daemon.Printable(d.Node, 63)
	}
	return string(daemon.DetailOf(s).Transport)
}

// maxListed is how many of a server's most recent refusals a list shows.
const maxListed = 3

// keptFrom lists the most recent refusals of a server's sandbox, as its view words them.
func keptFrom(w io.Writer, st feature.Status) {
	denied := daemon.DetailOf(st).Denied
	for i, x := range denied {
		if i == maxListed {
			fmt.Fprintf(w, "  and %d more: yaya mcp get %s\n", len(denied)-i, daemon.Printable(st.ID, 40))
			return
		}
		fmt.Fprintf(w, "  kept from: %s\n", daemon.Printable(x.What, 1000))
		if x.Allow != "" {
			fmt.Fprintf(w, "    to allow it: %s\n", daemon.Printable(x.Allow, 1000))
		}
	}
}

// troubles explains every failure: the server, the cause, the remedy.
func troubles(w io.Writer, r daemon.Report) {
	for _, n := range r.Refused {
		fmt.Fprintf(w, "\n%s was not reloaded; its previous content stays in force: %s\n", daemon.Printable(n.File, 300), daemon.Printable(n.Error, 1000))
	}
	for _, s := range r.Invalid {
		fmt.Fprintf(w, "\n%s is not started: %s\n  configured in %s\n", daemon.Printable(s.Name, 40), daemon.Printable(s.Error, 1000), s.File)
	}
	for _, s := range r.Servers {
		why := s.Reason
		if why == "" && s.LastError != "" && s.State != feature.Ready { // the trouble is over
			why = "last failure: " + s.LastError
		}
		d := daemon.DetailOf(s)
		if why == "" {
			if len(d.Denied) > 0 {
				fmt.Fprintf(w, "\n%s is %s, and its sandbox refused something:\n", daemon.Printable(s.ID, 40), s.State)
				keptFrom(w, s)
			}
			continue
		}
		fmt.Fprintf(w, "\n%s is %s: %s\n  %s\n", daemon.Printable(s.ID, 40), s.State, daemon.Printable(why, 1000), daemon.Printable(d.Endpoint, 300))
		keptFrom(w, s)
		if lines := lastLines(d.Stderr); len(lines) > 0 && s.State != feature.Installing {
			fmt.Fprintln(w, "  its last words on standard error:")
			for _, line := range lines {
				fmt.Fprintf(w, "    %s\n", line)
			}
		}
	}
}

// lastLines returns the last lines of a server's output, made safe for a terminal.
func lastLines(stderr string) []string {
	if stderr = strings.TrimSpace(stderr); stderr == "" {
		return nil
	}
	lines := strings.Split(stderr, "\n")
	lines = lines[max(0, len(lines)-8):]
	for i := range lines {
		lines[i] = daemon.Printable(lines[i], 300)
	}
	return lines
}

// width returns how many characters fit on a line.
func width(out io.Writer) int {
	if f, ok := out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 20 { //nolint:gosec // a descriptor fits
			return w
		}
	}
	return 80
}

// watchTable redraws the table until every server has started once. It shows the last line of
// output of each server that is being installed.
func watchTable(ctx context.Context, out io.Writer, now func() daemon.Report) {
	late := time.After(25 * time.Second)
	drawn, shown := 0, ""
	for {
		var b strings.Builder
		r := now()
		if err := serverTable(&b, r); err != nil {
			return
		}
		over := daemon.Settled(r.Servers)
		for _, s := range r.Servers {
			if s.State == feature.Installing { // on one line: the lines are counted
				fmt.Fprintln(&b, daemon.Printable("  "+s.ID+" is installing: "+s.Reason, width(out)-1))
			}
		}
		if text := b.String(); text != shown {
			if drawn > 0 {
				fmt.Fprintf(out, "\x1b[%dA\x1b[J", drawn)
			}
			drawn, shown = strings.Count(text, "\n"), text
			fmt.Fprint(out, text)
		}
		if over || (late == nil && !daemon.Installs(r.Servers)) {
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
