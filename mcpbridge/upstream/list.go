package upstream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Bounds of a listing.
const (
	maxPages  = 64
	maxCursor = 4 << 10
	maxListed = 20_000 // tools that are read before the host takes its 500
)

// catalogue remembers the tools by the hash of their definitions, so that an
// unchanged tool stays the same across listings and restarts.
type catalogue struct {
	mu   sync.Mutex
	tool map[[32]byte]*remote
}

// Discover implements [feature.Provider].
func (p *Provider) Discover(ctx context.Context) ([]feature.Tool, []string, error) {
	s := p.mainSession()
	if s == nil {
		return nil, nil, errStopped
	}
	if !s.peer.has("tools", "") {
		if err := p.instruct(s); err != nil {
			return nil, nil, err
		}
		if s.peer.has("resources", "") || s.peer.has("prompts", "") {
			return nil, nil, nil
		}
		return nil, []string{"the server offers no tools"}, nil
	}
	raws, warnings, err := p.listTools(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	var found []*remote
	defs := map[string]json.RawMessage{}
	named := map[string]struct{}{}
	for _, def := range raws {
		if obj, err := jsonrpc.ParseObject(def); err == nil {
			name, _ := obj.String("name")
			named[name] = struct{}{}
		}
		t, err := p.tool(def, s.peer.Era)
		if err != nil {
			warnings = append(warnings, err.Error())
			continue
		}
		if !p.cfg.Server.Allows(t.spec.Name) || len(t.spec.Name) > feature.MaxToolName {
			continue
		}
		found = append(found, t)
		if defs[t.spec.Name] == nil && len(defs) < maxPinned { // the first tool of a name counts
			defs[t.spec.Name] = def
		}
	}
	agreed, err := p.pinned(s, defs)
	if err != nil {
		return nil, nil, err
	}
	if w := p.quarantine(agreed); w != "" {
		warnings = append([]string{w}, warnings...)
	}
	var out, withheld []feature.Tool
	next := map[[32]byte]*remote{}
	for _, t := range found {
		name := t.spec.Name
		if why := agreed.Blocked[name]; why != "" {
			withheld = append(withheld, waiting{name: name, why: p.explainWaiting(agreed, name, why)})
			continue
		}
		if raw := agreed.Approved[name]; raw != nil {
			if t, err = p.tool(raw, s.peer.Era); err != nil {
				warnings = append(warnings, err.Error())
				continue
			}
		}
		next[t.hash] = t
		out = append(out, t)
	}
	p.list.mu.Lock()
	p.list.tool = next
	p.list.mu.Unlock()
	p.mu.Lock()
	p.instructions, p.named = agreed.Instructions, named
	p.mu.Unlock()
	return append(out, withheld[:min(len(withheld), maxWithheld)]...), warnings, nil
}

// maxRelists bounds how often tools are listed again because they changed during the listing.
const maxRelists = 3

// listTools lists all tools, and lists them again if the server reports a change in the
// meantime: many servers create their tools on the initialized notification, and report the
// change while the list is on its way. Only a list without such a change counts. No earlier
// list is pinned or offered; otherwise, tools that the server adds during this time would pass
// as part of its first list.
func (p *Provider) listTools(ctx context.Context, s *session) (raws []json.RawMessage, warnings []string, err error) {
	for range maxRelists + 1 {
		told := p.told.Load()
		if raws, warnings, err = s.pages(ctx, methodListTools, "tools"); err != nil || p.told.Load() == told {
			break
		}
	}
	return raws, warnings, err
}

// HasTool implements [relay.Toolbox].
func (p *Provider) HasTool(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.named[name]
	return ok
}

// instruct takes the instructions of a server without tools.
func (p *Provider) instruct(s *session) error {
	agreed := Agreed{}
	if s.peer.Instructions != "" {
		var err error
		if agreed, err = p.pinned(s, nil); err != nil {
			return err
		}
	}
	p.mu.Lock()
	p.instructions = agreed.Instructions
	p.mu.Unlock()
	return nil
}

// Bounds of pinned and withheld tools.
const (
	maxPinned   = 4 * feature.MaxTools
	maxWithheld = feature.MaxTools
)

// Offer is a server's description of itself and its tools, for the approval.
type Offer struct {
	Identity     string // its own name for itself
	Version      string // of the protocol
	Instructions string // as clients would get them
	Tools        map[string]json.RawMessage
}

// Agreed is the approved part of an offer: see [Config.Pin].
type Agreed struct {
	Whole           string                     // why nothing of the server may be used
	Blocked         map[string]string          // why a tool may not be offered
	Approved        map[string]json.RawMessage // definitions to offer instead of a tool's own
	Instructions    string                     // that clients may read
	NewInstructions bool                       // others wait
}

// pinned asks which parts of an offer may be used.
func (p *Provider) pinned(s *session, defs map[string]json.RawMessage) (Agreed, error) {
	text := instructions(s.peer.Instructions)
	if p.cfg.Pin == nil {
		return Agreed{Instructions: text}, nil
	}
	return p.cfg.Pin(Offer{s.peer.Name, s.peer.Version, text, defs})
}

// maxInstructions bounds how much of a server's instructions is shown.
const maxInstructions = 4 << 10

// instructions makes a server's instructions for its clients' models safe to show.
func instructions(raw string) string {
	if len(raw) > 16*maxInstructions {
		raw = cut.Text(raw, 16*maxInstructions)
	}
	return strings.TrimSpace(feature.Clean(raw, maxInstructions))
}

// Instructions implements [relay.Server].
func (p *Provider) Instructions() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.instructions
}

// waiting is a tool that cannot be called before somebody approves it.
type waiting struct{ name, why string }

// Spec implements [feature.Tool].
func (t waiting) Spec() feature.Spec {
	return feature.Spec{Name: t.name, Kind: tool.KindNetwork, Withheld: t.why}
}

// Invoke implements [feature.Tool]; nothing calls it.
func (t waiting) Invoke(context.Context, tool.Call) (tool.Result, error) {
	return tool.Fail(tool.ErrUnavailable, "%s", t.why), nil
}

// explainWaiting returns the message for the caller of a tool that waits for approval.
func (p *Provider) explainWaiting(agreed Agreed, name, why string) string {
	server := p.cfg.Server.Name
	what := shellWord(server)
	if agreed.Whole == "" {
		what += " " + shellWord(name)
	}
	return fmt.Sprintf("tool %q of server %q waits for approval: %s; to review and approve it, run yaya mcp approve %s on the machine that runs yaya, or use the tab Trust of the server on yaya's page",
		feature.Clean(name, 64), server, feature.Clean(why, 300), what)
}

// shellWord returns a name as one word of a shell's command line.
func shellWord(s string) string {
	s = feature.Clean(s, 64)
	if strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && r != '/' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	}) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// quarantine tells which tools cannot be used, and the remedy.
func (p *Provider) quarantine(agreed Agreed) string {
	if len(agreed.Blocked) == 0 {
		return ""
	}
	names := slices.Sorted(maps.Keys(agreed.Blocked))
	what := fmt.Sprintf("tool %s waits", feature.Clean(names[0], 64))
	if len(names) > 1 {
		what = fmt.Sprintf("%d tools wait", len(names))
	}
	return fmt.Sprintf("%s for approval (%s): yaya mcp approve %s", what, feature.Clean(agreed.Blocked[names[0]], 200), shellWord(p.cfg.Server.Name))
}

// pages requests a whole list, page by page.
func (s *session) pages(ctx context.Context, method, member string) (out []json.RawMessage, warnings []string, err error) {
	cursor, seen := "", map[string]bool{}
	for page := 0; ; page++ {
		if page == maxPages {
			return out, append(warnings, fmt.Sprintf("its answer to %s has more than %d pages; the rest is left out", method, maxPages)), nil
		}
		var params []byte
		if cursor != "" {
			params = append(jsonrpc.AppendString([]byte(`{"cursor":`), cursor), '}')
		}
		raw, err := s.ask(ctx, method, params)
		if err != nil {
			return nil, nil, err
		}
		var res map[string]json.RawMessage
		var entries []json.RawMessage
		next := ""
		if err = json.Unmarshal(raw, &res); err == nil && res[member] != nil {
			err = json.Unmarshal(res[member], &entries)
		}
		if err == nil && res["nextCursor"] != nil {
			err = json.Unmarshal(res["nextCursor"], &next)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("the server's answer to %s is malformed: %w", method, err)
		}
		out = append(out, entries...)
		if next == "" {
			return out, warnings, nil
		}
		if len(next) > maxCursor || seen[next] || len(out) > maxListed {
			return out, append(warnings, fmt.Sprintf("its answer to %s never ends; yaya offers the entries so far", method)), nil
		}
		seen[next] = true
		cursor = next
	}
}

// tool decodes one definition, or returns the earlier tool with the same definition.
func (p *Provider) tool(raw json.RawMessage, era servers.Era) (*remote, error) {
	hash := sha256.Sum256(raw)
	p.list.mu.Lock()
	known := p.list.tool[hash]
	p.list.mu.Unlock()
	if known != nil {
		return known, nil
	}
	var d struct {
		Name         string          `json:"name"`
		Title        string          `json:"title"`
		Description  string          `json:"description"`
		InputSchema  json.RawMessage `json:"inputSchema"`
		OutputSchema json.RawMessage `json:"outputSchema"`
		Annotations  json.RawMessage `json:"annotations"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("a tool definition is malformed: %w", err)
	}
	// The raw message shares memory with the whole page; a tool outlives it.
	native, err := jsonrpc.ParseObject(bytes.Clone(raw))
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", feature.Clean(d.Name, 64), err)
	}
	t := &remote{p: p, hash: hash, native: capped(native)}
	if bytes.Contains(d.InputSchema, []byte("x-mcp-header")) {
		t.typed = &mcp.Tool{Name: d.Name, RawInputSchema: d.InputSchema}
		if err := validHeaders(t.typed); err != nil {
			if era == servers.EraModern {
				return nil, fmt.Errorf("tool %s: invalid x-mcp-header: %w", feature.Clean(d.Name, 64), err)
			}
			t.typed = nil
		}
	}
	t.nameJSON = jsonrpc.AppendString(nil, d.Name)
	t.spec = feature.Spec{
		Name: d.Name, Title: d.Title, Description: d.Description, InputSchema: d.InputSchema, OutputSchema: d.OutputSchema,
		Annotations: d.Annotations, Kind: tool.KindNetwork, Timeout: tool.OwnTimeout, Validate: p.cfg.Server.Validate, Native: t.native.Raw(),
	}
	return t, nil
}

// capped returns an entry of a list with its description cut to the limit of descriptions.
func capped(o jsonrpc.Object) jsonrpc.Object {
	text, ok := o.String("description")
	if !ok || len(text) <= feature.MaxDescription {
		return o
	}
	const mark = "… [cut]"
	head := text[:feature.MaxDescription-len(mark)]
	for len(head) > 0 && !utf8.RuneStart(text[len(head)]) {
		head = head[:len(head)-1]
	}
	cut, err := jsonrpc.ParseObject(o.Append(nil, jsonrpc.Edit{Name: "description", Value: jsonrpc.AppendString(nil, head+mark)}))
	if err != nil {
		return o
	}
	return cut
}

// validHeaders checks x-mcp-header annotations with the library, and recovers if a hostile
// schema makes it panic.
func validHeaders(t *mcp.Tool) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("unreadable annotation")
		}
	}()
	return mcp.ValidateParamHeaderAnnotations(t)
}
