package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// task is one to solve.
type task struct {
	Name   string   `json:"-"` // of its folder
	Kind   string   `json:"kind"`
	Needs  []string `json:"needs"` // programs
	Probe  []string `json:"probe"` // a program and its arguments, which has to end well
	Prompt string   `json:"prompt"`
	Setup  string   `json:"setup"` // what sh runs in the copy of the repository first
	Check  []string `json:"check"` // a program and its arguments
	Solve  []call   `json:"solve"` // the calls of the scripted model, one after the other
	Wrong  []call   `json:"wrong"` // others, after which the check fails
	dir    string   // of the task
}

// call is one of a tool.
type call struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

var kinds = []string{"bug", "feature", "refactoring", "build", "merge", "large file", "monorepo"}

// tasksIn reads the tasks below a folder, in the order of their names.
func tasksIn(dir string) ([]task, error) {
	folder := os.DirFS(dir)
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return nil, err
	}
	var all []task
	for _, e := range entries {
		t := task{Name: e.Name(), dir: filepath.Join(dir, e.Name())}
		raw, err := fs.ReadFile(folder, e.Name()+"/task.json")
		if err != nil {
			return nil, err
		}
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&t); err != nil {
			return nil, fmt.Errorf("task %s: %w", t.Name, err)
		}
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("task %s: %w", t.Name, err)
		}
		all = append(all, t)
	}
	return all, nil
}

func (t task) check() error {
	switch {
	case !slices.Contains(kinds, t.Kind):
		return fmt.Errorf("its kind is one of %q, not %q", kinds, t.Kind)
	case t.Prompt == "" || len(t.Check) == 0 || len(t.Solve) == 0 || len(t.Wrong) == 0:
		return errors.New("it needs prompt, check, solve and wrong")
	}
	return nil
}

// missing returns what the task needs and this machine lacks, "" for nothing.
func (t task) missing(ctx context.Context) string {
	for _, p := range append([]string{t.Check[0]}, t.Needs...) {
		if _, err := exec.LookPath(p); err != nil {
			return "there is no " + p
		}
	}
	if len(t.Probe) > 0 && exec.CommandContext(ctx, t.Probe[0], t.Probe[1:]...).Run() != nil { //nolint:gosec // the tasks are ours
		return "does not work here: " + strings.Join(t.Probe, " ")
	}
	return ""
}

// script is that of the scripted model, in the form of llm-echo.
func script(calls []call) string {
	type step struct {
		Text  string           `json:"text,omitempty"`
		Calls []map[string]any `json:"tool_calls,omitempty"`
	}
	var steps []step
	for _, c := range calls {
		steps = append(steps, step{Calls: []map[string]any{{"name": c.Tool, "args": c.Args}}})
	}
	steps = append(steps, step{Text: "It is done."})
	raw, err := json.Marshal(map[string]any{"steps": steps})
	if err != nil { // the arguments were read as JSON
		panic(err)
	}
	return string(raw)
}
