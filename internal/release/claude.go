//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// calledByClaude is how Claude Code names the tool, and said what its model passes to it.
const (
	calledByClaude = "mcp__yaya__echo__echo"
	said           = "hello from Claude Code"
)

// askClaude has Claude Code itself call the tool through yaya, if YAYA_CLAUDE names it. Its model is a script on this
// machine, so no account is needed.
func askClaude(ctx context.Context, home string, env []string, say func(string)) (err error) {
	claude := os.Getenv("YAYA_CLAUDE")
	if claude == "" {
		say("Claude Code was not asked: YAYA_CLAUDE can name it")
		return nil
	}
	model := new(scripted)
	at, stop, err := serveHere(ctx, model)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	// Its tools are listed at once, as they are with the models that cannot search for them.
	env = append(env, "PATH=/usr/local/bin:/usr/bin:/bin:"+filepath.Dir(claude), "ANTHROPIC_BASE_URL="+at,
		"ANTHROPIC_API_KEY=sk-ant-none", "ENABLE_TOOL_SEARCH=false", "DISABLE_TELEMETRY=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
	for _, args := range [][]string{{"mcp", "list"}, {"-p", "Call the echo tool.", "--allowedTools", calledByClaude}} {
		cmd := exec.CommandContext(ctx, claude, args...) //nolint:gosec // named by who runs this
		cmd.Dir, cmd.Env = home, env
		out, err := cmd.CombinedOutput()
		if err == nil && args[0] == "mcp" && !strings.Contains(string(out), "Connected") {
			err = errors.New("want yaya as connected")
		}
		if err != nil {
			return fmt.Errorf("claude %s: %w\n%s", strings.Join(args, " "), err, out)
		}
		say("claude " + strings.Join(args, " ") + ": " + strings.Join(strings.Fields(string(out)), " "))
	}
	if !model.heard.Load() {
		return fmt.Errorf("the model of Claude Code got no answer of %s", calledByClaude)
	}
	say("Claude Code called echo__echo through yaya")
	return nil
}

// scripted speaks as much of Anthropic's Messages API as Claude Code needs: a model that calls the tool, and repeats
// what it answers.
type scripted struct{ heard atomic.Bool }

type offered struct {
	Name string `json:"name"`
}

// ServeHTTP implements [http.Handler].
func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Model    string    `json:"model"`
		Tools    []offered `json:"tools"`
		Messages []struct {
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if r.URL.Path != "/v1/messages" || json.NewDecoder(http.MaxBytesReader(w, r.Body, 16<<20)).Decode(&q) != nil || len(q.Messages) == 0 {
		http.Error(w, "{}", http.StatusNotFound)
		return
	}
	last := string(q.Messages[len(q.Messages)-1].Content)
	block, delta, stop := any(map[string]any{"type": "text", "text": ""}), any(map[string]any{"type": "text_delta", "text": "done"}), "end_turn"
	answered := strings.Contains(last, "tool_result")
	if slices.Contains(q.Tools, offered{calledByClaude}) && !answered {
		block = map[string]any{"type": "tool_use", "id": "toolu_1", "name": calledByClaude, "input": map[string]any{}}
		delta = map[string]any{"type": "input_json_delta", "partial_json": `{"text":"` + said + `"}`}
		stop = "tool_use"
	}
	if answered && strings.Contains(last, said) {
		s.heard.Store(true)
		delta = map[string]any{"type": "text_delta", "text": "The tool has answered: " + said}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range []map[string]any{
		{"type": "message_start", "message": map[string]any{"id": "msg_1", "type": "message", "role": "assistant", "model": q.Model, "content": []any{}, "usage": map[string]int{"input_tokens": 1, "output_tokens": 1}}},
		{"type": "content_block_start", "index": 0, "content_block": block},
		{"type": "content_block_delta", "index": 0, "delta": delta},
		{"type": "content_block_stop", "index": 0},
		{"type": "message_delta", "delta": map[string]any{"stop_reason": stop}, "usage": map[string]int{"output_tokens": 1}},
		{"type": "message_stop"},
	} {
		data, err := json.Marshal(e)
		if err != nil {
			return
		}
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e["type"], data)
	}
}
