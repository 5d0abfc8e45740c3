package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// scripted is the plugin of the model that follows the tasks' scripts.
const scripted = "llm-echo"

func main() {
	bin := flag.String("yaya", "bin/yaya", "the binary to measure")
	dir := flag.String("tasks", "internal/eval/testdata", "folder of the tasks")
	only := flag.String("only", "", "run the tasks whose names contain this alone")
	out := flag.String("json", "", "write the results to this file")
	var m model
	flag.StringVar(&m.plugin, "plugin", scripted, "plugin of the provider; its key comes from the environment")
	flag.StringVar(&m.name, "model", "", "model of the provider")
	flag.StringVar(&m.effort, "effort", "", "thinking_effort of the provider")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := eval(ctx, os.Stdout, *bin, *dir, *only, *out, m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "eval:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// eval runs the tasks, prints a table, and reports whether all have passed.
func eval(ctx context.Context, w io.Writer, bin, dir, only, out string, m model) (bool, error) {
	if m.plugin != scripted && m.name == "" {
		return false, fmt.Errorf("-plugin %s needs -model", m.plugin)
	}
	bin, err := filepath.Abs(bin)
	if err != nil {
		return false, err
	}
	all, err := tasksIn(dir)
	if err != nil {
		return false, err
	}
	var got []result
	for _, t := range all {
		if !strings.Contains(t.Name, only) {
			continue
		}
		res, err := runner{bin, m}.run(ctx, t, t.Solve)
		if err != nil {
			return false, err
		}
		got = append(got, res)
	}
	if out != "" {
		raw, err := json.MarshalIndent(map[string]any{"plugin": m.plugin, "model": m.name, "effort": m.effort, "results": got}, "", "  ")
		if err != nil {
			return false, err
		}
		if err := os.WriteFile(out, append(raw, '\n'), 0o600); err != nil { //nolint:forbidigo // the user names it
			return false, err
		}
	}
	return table(w, got)
}

// table prints results, and reports whether all that ran have passed.
func table(w io.Writer, all []result) (ok bool, err error) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "task\tkind\tpassed\tsteps\tinput\tcached\toutput\tUS$\tseconds") // kept for Flush
	var sum result
	passed, ran := 0, 0
	for _, r := range all {
		word := "no"
		switch {
		case r.Skipped != "":
			word = "skipped: " + r.Skipped
		case r.Passed:
			word = "yes"
		}
		if r.Skipped == "" {
			ran++
		}
		if r.Passed {
			passed++
		}
		row(t, r, word)
		sum.Steps, sum.Input, sum.Cached, sum.Output, sum.CostUSD, sum.Seconds = sum.Steps+r.Steps, sum.Input+r.Input, sum.Cached+r.Cached, sum.Output+r.Output, sum.CostUSD+r.CostUSD, sum.Seconds+r.Seconds
	}
	sum.Task = "all"
	row(t, sum, fmt.Sprintf("%d of %d", passed, ran))
	if err := t.Flush(); err != nil {
		return false, err
	}
	for _, r := range all {
		if r.Why != "" {
			if _, err := fmt.Fprintf(w, "\n%s: %s\n", r.Task, r.Why); err != nil {
				return false, err
			}
		}
	}
	return passed == ran && ran > 0, nil
}

func row(w io.Writer, r result, passed string) {
	share := "-"
	if r.Input > 0 {
		share = fmt.Sprintf("%d %%", 100*r.Cached/r.Input)
	}
	_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\t%d\t%.4f\t%.1f\n", r.Task, cmp.Or(r.Kind, "-"), passed, r.Steps, r.Input, share, r.Output, r.CostUSD, r.Seconds) // kept for Flush
}
