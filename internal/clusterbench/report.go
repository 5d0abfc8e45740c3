//go:build linux

package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// row sums up the rounds of a fault.
type row struct {
	Fault       string   `json:"fault"`
	Skipped     string   `json:"skipped,omitempty"`
	Histories   int      `json:"histories"`
	Operations  int      `json:"operations"`
	Writes      int      `json:"writes"`
	Revocations int      `json:"revocations"`
	Seen        int      `json:"seen"`  // events that dashboards got
	Joins       int      `json:"joins"` // of theirs
	Findings    []string `json:"findings"`
	Said        int      `json:"said"` // to agents, and acknowledged
	SayGapMS    int64    `json:"max_say_gap_ms"`
	WriteGapMS  int64    `json:"max_write_gap_ms"`
	CallGapMS   int64    `json:"max_call_gap_ms"`
	ReachedMS   int64    `json:"max_revocation_reached_ms"`
	AllMS       int64    `json:"max_revocation_all_ms"`
}

func (w *row) add(p played, seed uint64) {
	w.Histories++
	w.Operations += p.Operations
	w.Writes += p.Writes
	w.Revocations += p.Revocations
	w.Seen += p.Seen
	w.Joins += p.Joins
	for _, f := range shorten(p.Findings) {
		w.Findings = append(w.Findings, fmt.Sprintf("seed %d: %s", seed, f))
	}
	w.Said += p.Said
	w.SayGapMS = max(w.SayGapMS, p.SayGap.Milliseconds())
	w.WriteGapMS = max(w.WriteGapMS, p.WriteGap.Milliseconds())
	w.CallGapMS = max(w.CallGapMS, p.CallGap.Milliseconds())
	w.ReachedMS = max(w.ReachedMS, p.Reached.Milliseconds())
	w.AllMS = max(w.AllMS, p.All.Milliseconds())
}

// table writes the rows as Markdown, and the findings behind it.
func table(out io.Writer, rows []row) error {
	var b strings.Builder
	b.WriteString("| fault | histories | operations | acknowledged changes | messages to agents | findings | longest without a change | longest without a call | longest without a message in a session | revocations | slowest, majority in reach | slowest, any node |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, w := range rows {
		if w.Skipped != "" {
			fmt.Fprintf(&b, "| %s | left out: %s |\n", w.Fault, w.Skipped)
			continue
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %s | %s | %s | %d | %s | %s |\n", w.Fault, w.Histories, w.Operations, w.Writes, w.Said, len(w.Findings),
			seconds(w.WriteGapMS), seconds(w.CallGapMS), seconds(w.SayGapMS), w.Revocations, seconds(w.ReachedMS), seconds(w.AllMS))
	}
	for _, w := range rows {
		for _, f := range w.Findings {
			fmt.Fprintf(&b, "\n%s, %s\n", w.Fault, f)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func seconds(ms int64) string {
	return fmt.Sprintf("%.2f s", (time.Duration(ms) * time.Millisecond).Seconds())
}
