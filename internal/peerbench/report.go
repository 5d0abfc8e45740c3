//go:build unix

package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report is everything that a run has found.
type report struct {
	machine               string
	begun                 time.Time
	loadBefore, loadAfter string
	took                  time.Duration
	rounds                int
	per                   time.Duration
	direct                []outcome
	results               []result
}

// machine describes where the figures come from.
func machine() string {
	cpu := ""
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.SplitSeq(string(data), "\n") {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
				cpu = " (" + strings.TrimSpace(v) + ")"
				break
			}
		}
	}
	return fmt.Sprintf("%d CPUs%s, %s/%s, %s", runtime.NumCPU(), cpu, runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// loadAverage is that of the last minute.
func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(data), " ")
	return one
}

func (r *result) title() string { return r.peer.name + ", " + r.kind }

// measured are the results with checks.
func (r *report) measured() []result {
	return slices.DeleteFunc(slices.Clone(r.results), func(x result) bool { return x.checks == nil })
}

// directCannot are the checks that ask for what a gateway adds.
var directCannot = map[string]bool{"modern era": true, "recovery": true}

func passed(checks []outcome) int {
	n := 0
	for _, o := range checks {
		if o.err == nil {
			n++
		}
	}
	return n
}

// cell is a text in a table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", "; ", "<", "&lt;").Replace(s)
}

// table writes a table of Markdown.
func table(b *strings.Builder, head []string, rows [][]string) {
	line := func(cells []string) {
		b.WriteString("|")
		for _, c := range cells {
			b.WriteString(" " + cell(c) + " |")
		}
		b.WriteString("\n")
	}
	line(head)
	b.WriteString("|" + strings.Repeat("---|", len(head)) + "\n")
	for _, r := range rows {
		line(r)
	}
	b.WriteString("\n")
}

// markdown is docs/PEERS.md.
func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Beside other gateways

%s writes this file: it installs published gateways, runs each of them and yaya before the same upstream server, and looks at what arrives and at what it costs. Every gateway is configured as its documentation says; the setting stands beside the version. The authors of this file are the authors of yaya: run it yourself, and tell us of a setting that does a peer more justice.

Run of %s: %s. Load average %s before and %s after, %s in all. The command was %s; %s installs one peer alone, and %s adds one of your own. Absolute figures of a shared machine mean little; compare the shares.

`, "`make bench-peers`", r.begun.UTC().Format("2006-01-02"), r.machine, r.loadBefore, r.loadAfter, r.took.Round(time.Second),
		"`bin/peerbench -yaya bin/yaya -write docs/PEERS.md`", "`bin/peerbench -only NAME`", "`-peer NAME=COMMAND`")
	r.summary(&b)
	r.fidelity(&b)
	r.speed(&b)
	r.versions(&b)
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func (r *report) summary(b *strings.Builder) {
	fmt.Fprintf(b, "## Summary\n\nChecks passed of %d; calls a second as a share of the direct connection's.\n\n", len(checks))
	var rows [][]string
	for _, x := range r.measured() {
		row := []string{x.peer.name, x.kind, fmt.Sprint(passed(x.checks))}
		for i := range loadCases {
			if i >= len(x.speeds) || x.speeds[i].err != nil {
				row = append(row, "–")
				continue
			}
			row = append(row, share(x.speeds[i].share))
		}
		row = append(row, fmt.Sprintf("%.0f", float64(x.rss)/(1<<20)), fmt.Sprintf("%.2f", x.took.Seconds()))
		rows = append(rows, row)
	}
	head := []string{"gateway", "upstream", "checks"}
	for _, c := range loadCases {
		head = append(head, c.name)
	}
	table(b, append(head, "RSS after the load, MiB", "start to first answer, s"), rows)
}

// share has two digits that count.
func share(x float64) string {
	switch {
	case x >= .1:
		return fmt.Sprintf("%.2f", x)
	case x >= .01:
		return fmt.Sprintf("%.3f", x)
	}
	return fmt.Sprintf("%.4f", x)
}

func (r *report) fidelity(b *strings.Builder) {
	b.WriteString("## What arrives\n\nThe upstream speaks 2025-11-25, as most servers do. The client is one session over streamable HTTP, or over HTTP+SSE where a gateway has nothing else. \"direct\" is the client at the upstream itself; two checks mean nothing there: it has no modern era to offer, and its sessions end with its process.\n\n")
	all := r.measured()
	head := []string{"check", "passes when", "direct"}
	for i := range all {
		head = append(head, all[i].title())
	}
	var rows [][]string
	for i, c := range checks {
		row := []string{c.name, c.says, mark(r.direct, i)}
		if directCannot[c.name] {
			row[2] = "–"
		}
		for _, x := range all {
			row = append(row, mark(x.checks, i))
		}
		rows = append(rows, row)
	}
	table(b, head, rows)
	b.WriteString("### What did not pass\n\n")
	for i := range all {
		x := &all[i]
		fmt.Fprintf(b, "**%s**", x.title())
		if passed(x.checks) == len(checks) {
			b.WriteString(": nothing.\n\n")
			continue
		}
		b.WriteString("\n\n")
		for _, o := range x.checks {
			if o.err != nil {
				fmt.Fprintf(b, "- %s: %s\n", o.check, quoted(o.err))
			}
		}
		b.WriteString("\n")
	}
}

// quoted is an error in one line of plain text: it has words of the peer.
func quoted(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if r := []rune(text); len(r) > 200 {
		text = string(r[:200]) + "…"
	}
	return "`" + strings.ReplaceAll(text, "`", "'") + "`"
}

func mark(all []outcome, i int) string {
	if i >= len(all) {
		return "–"
	}
	if all[i].err != nil {
		return "✗"
	}
	return "✓"
}

func (r *report) speed(b *strings.Builder) {
	fmt.Fprintf(b, "## What it costs\n\nCalls of a tool that returns its argument; \"8 × 8\" is 8 sessions with 8 calls in flight each. Rounds of %v with the peer alternate with rounds over a direct HTTP connection to the upstream, and the median of %d counts. CPU and RSS are of all processes of the peer, without those of the upstream.\n\n", r.per, r.rounds)
	var rows [][]string
	for _, x := range r.measured() {
		for _, s := range x.speeds {
			if s.err != nil {
				rows = append(rows, []string{x.peer.name, x.kind, s.load, quoted(s.err), "", "", "", "", "", "", fmt.Sprint(s.failed)})
				continue
			}
			rows = append(rows, []string{
				x.peer.name, x.kind, s.load, fmt.Sprintf("%.0f", s.direct), fmt.Sprintf("%.0f", s.perSecond), share(s.share),
				fmt.Sprintf("%.2f", s.p50), fmt.Sprintf("%.2f", s.p99), fmt.Sprintf("%.1f / %.1f", s.p50/s.directP50, s.p99/s.directP99), fmt.Sprintf("%.0f", s.cpu), fmt.Sprint(s.failed),
			})
		}
	}
	table(b, []string{"gateway", "upstream", "load", "direct/s", "calls/s", "share", "p50 ms", "p99 ms", "× direct's p50 / p99", "CPU µs/call", "failed calls"}, rows)
	var lines []string
	for _, x := range r.measured() {
		for _, s := range x.speeds {
			if s.failed > 0 && s.failure != nil {
				lines = append(lines, fmt.Sprintf("- %s, %s: %d calls failed, one with %s\n", x.title(), s.load, s.failed, quoted(s.failure)))
			}
		}
	}
	if len(lines) > 0 {
		b.WriteString(strings.Join(lines, "") + "\n")
	}
}

func (r *report) versions(b *strings.Builder) {
	b.WriteString("## Versions and settings\n\nThe release of each peer is pinned; what it needs comes as its package asks for it. Each runs with a fresh home, in a process group of its own, and listens on loopback alone, which is checked.\n\n")
	var rows [][]string
	seen := map[*peer]bool{}
	for _, x := range r.results {
		if seen[x.peer] || x.checks == nil {
			continue
		}
		seen[x.peer] = true
		rows = append(rows, []string{x.peer.name, x.peer.version, x.peer.source, strings.Join(x.peer.upstreams, ", "), x.peer.setting})
	}
	table(b, []string{"gateway", "version", "from", "upstreams", "setting"}, rows)
	var lines []string
	for _, x := range r.results {
		if x.err != nil {
			title := x.peer.name
			if x.kind != "" {
				title = x.title()
			}
			source := strings.TrimSpace(x.peer.version + " (" + x.peer.source + ")")
			lines = append(lines, fmt.Sprintf("- %s %s: %s\n", title, source, quoted(x.err)))
		}
	}
	if len(lines) > 0 {
		b.WriteString("Not measured, or not wholly:\n\n" + strings.Join(lines, "") + "\n")
	}
}
