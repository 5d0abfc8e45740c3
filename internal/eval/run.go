package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Bounds of one task.
const (
	solveTime = 20 * time.Minute
	checkTime = 2 * time.Minute
	maxLine   = 64 << 20 // bytes of an event
	maxWhy    = 2000     // bytes of a reason, and of a check's output, in the results
)

// model is who solves the tasks: a provider's plugin and the name of a model, or the scripted model.
type model struct{ plugin, name, effort string }

// result holds the outcome of a task.
type result struct {
	Task    string  `json:"task"`
	Kind    string  `json:"kind"`
	Passed  bool    `json:"passed"`
	Skipped string  `json:"skipped,omitempty"` // why
	Why     string  `json:"why,omitempty"`     // it has not passed
	Steps   int     `json:"steps"`             // calls of the model
	Input   int     `json:"input_tokens"`
	Cached  int     `json:"cached_tokens"` // of the input
	Output  int     `json:"output_tokens"`
	CostUSD float64 `json:"cost_usd"`
	Seconds float64 `json:"seconds"`
}

// runner runs tasks with a program.
type runner struct {
	bin   string
	model model
}

// run has the model solve a task, or the scripted one follow the calls, and checks the outcome. An
// error is one of the machine; what the agent does wrong is part of the result.
func (r runner) run(ctx context.Context, t task, calls []call) (res result, err error) {
	res = result{Task: t.Name, Kind: t.Kind}
	if res.Skipped = t.missing(ctx); res.Skipped != "" {
		return res, nil
	}
	dir, err := os.MkdirTemp("", "ye") // short, for the path of a socket
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }() //nolint:forbidigo // a folder of our own
	repo := filepath.Join(dir, "repo")
	if err := os.CopyFS(repo, os.DirFS(filepath.Join(t.dir, "repo"))); err != nil {
		return res, err
	}
	y := yaya{bin: r.bin, dir: dir, repo: repo}
	if t.Setup != "" {
		if out, err := y.command(ctx, "sh", "-ec", t.Setup).CombinedOutput(); err != nil {
			return res, fmt.Errorf("setup of %s: %w\n%s", t.Name, err, out)
		}
	}
	if err := y.prepare(ctx, r.model, calls); err != nil {
		return res, err
	}
	begun := time.Now()
	why := y.solve(ctx, t.Prompt, &res)
	res.Seconds = time.Since(begun).Seconds()
	if err := ctx.Err(); err != nil {
		return res, err
	}
	if err := copyOver(repo, filepath.Join(t.dir, "check")); err != nil { // the agent is in the way
		res.Why = err.Error()
		return res, nil
	}
	within, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	out, failed := y.command(within, t.Check[0], t.Check[1:]...).CombinedOutput()
	if res.Passed = failed == nil; !res.Passed {
		said := fmt.Sprintf("%v: %s", failed, bytes.TrimSpace(out))
		res.Why = strings.TrimSpace(why[:min(len(why), maxWhy)] + "\n" + said[max(0, len(said)-maxWhy):])
	}
	return res, nil
}

// copyOver copies the files of a folder over those of another, in which the agent may have left links.
func copyOver(to, from string) error {
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	source := os.DirFS(from)
	return errors.Join(fs.WalkDir(source, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return root.MkdirAll(name, 0o700)
		}
		raw, err := fs.ReadFile(source, name)
		if err != nil {
			return err
		}
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return root.WriteFile(name, raw, 0o600)
	}), root.Close())
}

// yaya is one of a task.
type yaya struct{ bin, dir, repo string }

// command returns a program that runs in the repository, without a network for its packages.
func (y yaya) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...) //nolint:gosec // the tasks are ours
	c.Dir = y.repo
	c.Env = append(os.Environ(), "HOME="+y.dir, "GOPROXY=off", "GOFLAGS=-mod=mod", "GOWORK=", "GOCACHE="+goCache(), "PYTHONDONTWRITEBYTECODE=1", "GIT_CONFIG_NOSYSTEM=1")
	c.WaitDelay = 5 * time.Second
	return c
}

// goCache is the cache that the checks share with this user's other builds.
func goCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return os.Getenv("GOCACHE")
	}
	return cmp.Or(os.Getenv("GOCACHE"), filepath.Join(dir, "go-build"))
}

func (y yaya) own(ctx context.Context, args ...string) *exec.Cmd {
	return y.command(ctx, y.bin, append([]string{"--data-dir", filepath.Join(y.dir, "d"), "--config-dir", filepath.Join(y.dir, "c")}, args...)...)
}

// prepare sets the model and trusts the repository. All calls are allowed: nobody is there to ask.
func (y yaya) prepare(ctx context.Context, m model, calls []call) error {
	add := []string{"provider", "add", "eval", "--plugin", m.plugin, "--model", m.name, "--use"}
	if m.plugin == scripted {
		add = []string{"provider", "add", "eval", "--plugin", scripted, "--set", "script=" + script(calls), "--use"}
	} else if m.effort != "" {
		add = append(add, "--set", "thinking_effort="+m.effort)
	}
	all := [][]string{add, {"config", "set", "approval.rules", `[{"decision":"allow"}]`}, {"trust", "--yes", y.repo}}
	if m.plugin != scripted { // its commands are nobody's
		all = append(all, []string{"config", "set", "sandbox.mode", "require"})
	}
	for _, args := range all {
		if out, err := y.own(ctx, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("yaya %s: %w\n%s", strings.Join(args[:2], " "), err, out)
		}
	}
	return nil
}

// solve gives the agent the task, and counts. It returns why the turn has not ended well, "" if it
// has.
func (y yaya) solve(ctx context.Context, prompt string, res *result) string {
	ctx, cancel := context.WithTimeout(ctx, solveTime)
	defer cancel()
	c := y.own(ctx, "run", "--strategy", "coder", "--approve", "rules", "--json", prompt)
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var ev struct {
			Kind    string `json:"kind"`
			Payload struct {
				Steps int `json:"steps"`
				Usage struct {
					Input  int `json:"input"`
					Cached int `json:"input_cache_read"`
					Output int `json:"output"`
				} `json:"usage"`
				CostUSD float64 `json:"cost_usd"`
				Error   string  `json:"error"`
			} `json:"payload"`
		}
		if json.Unmarshal(lines.Bytes(), &ev) != nil {
			continue // a payload of another form
		}
		switch p := ev.Payload; ev.Kind {
		case "llm.call.response": // what a turn has cost that fails
			res.Steps, res.Input, res.Cached, res.Output, res.CostUSD = res.Steps+1, res.Input+p.Usage.Input, res.Cached+p.Usage.Cached, res.Output+p.Usage.Output, res.CostUSD+p.CostUSD
		case "turn.completed": // with what summaries have
			res.Steps, res.Input, res.Cached, res.Output, res.CostUSD = p.Steps, p.Usage.Input, p.Usage.Cached, p.Usage.Output, p.CostUSD
		case "turn.failed":
			return p.Error
		}
	}
	if err := cmp.Or(err, lines.Err()); err != nil {
		return fmt.Sprintf("yaya run: %v: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	return ""
}
