//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// check is a row of the table of fidelity.
type check struct {
	name string
	says string // in one line, what passes
	try  func(ctx context.Context, s *subject) error
}

// subject is the endpoint under test, a gateway or the upstream itself, with an open session.
type subject struct {
	to    endpoint
	c     *client
	names map[string]string // of tools, by the name that the upstream gives
	tools map[string]json.RawMessage
}

// checkLimit bounds a check, whatever it does.
const checkLimit = 20 * time.Second

// checks are the rows, in the order in which they run: the last one ends the upstream.
var checks = []check{
	{"modern era", "a client of 2026-07-28 discovers the server without a session, lists its tools and calls one", modernEra},
	{"whole tool list", "all 150 tools of an upstream that lists them in 3 pages are listed", wholeList},
	{"fields of tools", "title, both schemas, annotations, icons, _meta and an unknown member arrive unchanged", toolFields},
	{"results", "structuredContent, annotated content, a resource link and _meta arrive; isError stays with its text", results},
	{"errors", "the code and the data of a JSON-RPC error arrive", rpcErrors},
	{"numbers and text", "integers above 2^53, 1e400 and long fractions arrive as written, and so does any text", numbers},
	{"progress", "progress notifications arrive under the client's own token", progress},
	{"logging", "logging/setLevel is accepted, and a log message arrives", logging},
	{"resources", "resources and templates are listed and read", resources},
	{"prompts, completion", "prompts are listed and filled in, and an argument is completed", prompts},
	{"elicitation", "a question of a tool to the user is put and answered", elicitation},
	{"sampling", "a question of a tool to the model is put and answered", sampling},
	{"list changes", "tools/list_changed arrives, and the new tool is listed", listChanges},
	{"large results", "a result of 1 MiB arrives whole", largeResults},
	{"sessions apart", "two clients with the same ids and tokens at once get their own answers and progress", sessionsApart},
	{"cancellation", "a cancelled call is cancelled at the upstream", cancellation},
	{"recovery", "after the upstream's process has ended, the same session's calls work again within 10 s", recovery},
}

// outcome is the result of a check: err is nil if it passed.
type outcome struct {
	check string
	err   error
}

// runChecks opens a session and runs every check, each within its limit. After
// one that fails the next has a new session, so that nothing is left over in it.
// The error is that of opening one.
func runChecks(ctx context.Context, to endpoint) ([]outcome, error) {
	var out []outcome
	s := &subject{to: to}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	defer func() { s.c.close() }()
	for i, c := range checks {
		limited, cancel := context.WithTimeout(ctx, checkLimit)
		err := c.try(limited, s)
		cancel()
		out = append(out, outcome{c.name, err})
		if err == nil || i == len(checks)-1 {
			continue
		}
		old := s.c
		if err := s.open(ctx); err != nil {
			return out, fmt.Errorf("a new session after %q: %w", c.name, err)
		}
		old.close()
	}
	return out, nil
}

// open opens the session and learns under which names the tools stand.
func (s *subject) open(ctx context.Context) error {
	c, err := connect(ctx, s.to)
	if err != nil {
		return err
	}
	old := s.c
	s.c = c
	if err = s.list(ctx); err == nil && s.tools["echo"] == nil {
		err = fmt.Errorf("the tool echo is not listed among %d", len(s.tools))
	}
	if err != nil {
		c.close()
		s.c = old
	}
	return err
}

// list reads the whole list of tools.
func (s *subject) list(ctx context.Context) error {
	s.names, s.tools = map[string]string{}, map[string]json.RawMessage{}
	cursor := ""
	for range 50 {
		params := map[string]any{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		raw, err := s.c.request(ctx, "tools/list", params)
		if err != nil {
			return err
		}
		var page struct {
			Tools      []json.RawMessage `json:"tools"`
			NextCursor string            `json:"nextCursor"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return fmt.Errorf("tools/list: %w", err)
		}
		for _, raw := range page.Tools {
			var t struct {
				Name string `json:"name"`
			}
			if err := json.Unmarshal(raw, &t); err != nil {
				return fmt.Errorf("tools/list: %w", err)
			}
			own := ownName(t.Name)
			s.names[own], s.tools[own] = t.Name, raw
		}
		if cursor = page.NextCursor; cursor == "" {
			return nil
		}
	}
	return errors.New("tools/list does not come to an end")
}

// ownName is the name that the upstream gives: gateways put the server's name
// before it, with a separator that no name of the upstream has.
func ownName(name string) string {
	return name[strings.LastIndexAny(name, "_-./:")+1:]
}

// called is a result of tools/call.
type called struct {
	Content           []json.RawMessage `json:"content"`
	StructuredContent json.RawMessage   `json:"structuredContent"`
	Meta              json.RawMessage   `json:"_meta"`
	IsError           bool              `json:"isError"`
}

func (r called) text() string {
	if len(r.Content) == 0 {
		return ""
	}
	var t struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(r.Content[0], &t) // not a text: ""
	return t.Text
}

// call calls a tool by the upstream's name. more goes into the params.
func (s *subject) call(ctx context.Context, c *client, tool string, args any, more map[string]any) (called, error) {
	name, ok := s.names[tool]
	if !ok {
		return called{}, fmt.Errorf("the tool %s is not listed", tool)
	}
	if args == nil {
		args = map[string]any{}
	}
	params := map[string]any{"name": name, "arguments": args}
	maps.Copy(params, more)
	raw, err := c.request(ctx, "tools/call", params)
	if err != nil {
		return called{}, err
	}
	var r called
	if err := json.Unmarshal(raw, &r); err != nil {
		return called{}, fmt.Errorf("tools/call %s: %w", tool, err)
	}
	return r, nil
}

// covers reports whether got has everything of want, numbers as they are
// written. A gateway may add members to an object.
func covers(want, got any) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		for k, v := range w {
			if there, has := g[k]; !has || !covers(v, there) {
				return false
			}
		}
		return ok
	case []any:
		g, ok := got.([]any)
		return ok && slices.EqualFunc(w, g, covers)
	}
	return want == got
}

func value(raw json.RawMessage) any {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(raw)
	}
	return v
}

// differences lists the members of want that are missing or changed in got.
func differences(want, got json.RawMessage, except ...string) []string {
	var w, g map[string]json.RawMessage
	if json.Unmarshal(want, &w) != nil || json.Unmarshal(got, &g) != nil {
		return []string{"not an object"}
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(w)) {
		switch {
		case slices.Contains(except, k):
		case g[k] == nil:
			out = append(out, k+" missing")
		case !covers(value(w[k]), value(g[k])):
			out = append(out, k+" changed")
		}
	}
	return out
}

func listed(what []string) error {
	if len(what) == 0 {
		return nil
	}
	return errors.New(strings.Join(what, ", "))
}

// got says what came instead.
func got(what, came, want string) error {
	if came == want {
		return nil
	}
	return fmt.Errorf("%s: got %.80q, want %.80q", what, came, want)
}

func wholeList(_ context.Context, s *subject) error {
	n := 0
	for name := range s.tools {
		if !strings.HasPrefix(name, "added") {
			n++
		}
	}
	missing := 0
	for page := range pages {
		if s.tools[fmt.Sprintf("filler%dx%d", page, perPage-1)] == nil {
			missing++
		}
	}
	if missing > 0 || n < pages*perPage {
		return fmt.Errorf("%d of %d tools are listed", n, pages*perPage)
	}
	return nil
}

func toolFields(_ context.Context, s *subject) error {
	raw := s.tools["full"]
	if raw == nil {
		return errors.New("the tool is not listed")
	}
	return listed(differences(json.RawMessage(fullTool), raw, "name"))
}

func results(ctx context.Context, s *subject) error {
	var lost []string
	for tool, want := range map[string]string{"result": richResult, "failed": failedResult} {
		raw, err := s.c.request(ctx, "tools/call", map[string]any{"name": s.names[tool], "arguments": map[string]any{}})
		if err != nil {
			lost = append(lost, fmt.Sprintf("%s: %v", tool, err))
			continue
		}
		for _, d := range differences(json.RawMessage(want), raw) {
			lost = append(lost, tool+": "+d)
		}
	}
	slices.Sort(lost)
	return listed(lost)
}

func rpcErrors(ctx context.Context, s *subject) error {
	r, err := s.call(ctx, s.c, "refuse", nil, nil)
	var e *rpcError
	switch {
	case err == nil && r.IsError:
		return fmt.Errorf("it became a result with isError: %.80q", r.text())
	case err == nil:
		return errors.New("it became a result")
	case !errors.As(err, &e):
		return err
	}
	var lost []string
	if e.Code != -32099 {
		lost = append(lost, fmt.Sprintf("code %d in place of -32099", e.Code))
	}
	if !covers(value(json.RawMessage(errorData)), value(e.Data)) {
		lost = append(lost, "data missing or changed")
	}
	if !strings.Contains(e.Message, "refused as asked") {
		lost = append(lost, "message changed")
	}
	return listed(lost)
}

func numbers(ctx context.Context, s *subject) error {
	const sent = `{"big":12345678901234567890,"exact":0.1000000000000000055511151231257827,"huge":1e400,"text":"ü€😀\u0000\u2028\"\\/"}`
	var lost []string
	r, err := s.call(ctx, s.c, "raw", json.RawMessage(sent), nil)
	if err != nil {
		lost = append(lost, fmt.Sprintf("arguments: %v", err))
	} else {
		for _, d := range differences(json.RawMessage(sent), json.RawMessage(r.text())) {
			lost = append(lost, "arguments: "+d)
		}
	}
	if r, err = s.call(ctx, s.c, "numbers", nil, nil); err != nil {
		lost = append(lost, fmt.Sprintf("result: %v", err))
	} else if r.StructuredContent == nil {
		lost = append(lost, "result: structuredContent missing")
	} else {
		for _, d := range differences(json.RawMessage(numbersBack), r.StructuredContent) {
			lost = append(lost, "result: "+d)
		}
	}
	return listed(lost)
}

func largeResults(ctx context.Context, s *subject) error {
	r, err := s.call(ctx, s.c, "large", nil, nil)
	if err != nil {
		return err
	}
	if text := r.text(); text != largeText() {
		return fmt.Errorf("%d bytes arrived, or others than were sent", len(text))
	}
	return nil
}
