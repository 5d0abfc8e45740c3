package upstream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Bounds of a listing (UP-09).
const (
	maxPages  = 64
	maxCursor = 4 << 10
	maxListed = 20_000 // tools that are looked at before the host takes its 500
)

// catalogue remembers the tools by the hash of their definitions, so that an
// unchanged tool stays the same across listings and restarts.
type catalogue struct {
	mu   sync.Mutex
	tool map[[32]byte]*remote
}

// Discover implements [feature.Provider].
func (p *Provider) Discover(ctx context.Context) ([]feature.Tool, []string, error) {
	p.mu.Lock()
	s := p.main
	p.mu.Unlock()
	if s == nil {
		return nil, nil, errStopped
	}
	if !s.peer.HasTools {
		return nil, []string{"the server offers no tools"}, nil
	}
	var (
		out      []feature.Tool
		warnings []string
		cursor   string
		seen     = map[string]bool{}
		next     = map[[32]byte]*remote{}
	)
	for page := 0; ; page++ {
		if page == maxPages {
			warnings = append(warnings, fmt.Sprintf("its tool list has more than %d pages; the rest is left out", maxPages))
			break
		}
		var params []byte
		if cursor != "" {
			params = append(jsonrpc.AppendString([]byte(`{"cursor":`), cursor), '}')
		}
		raw, err := s.ask(ctx, methodListTools, params)
		if err != nil {
			return nil, nil, err
		}
		var res struct {
			Tools      []json.RawMessage `json:"tools"`
			NextCursor string            `json:"nextCursor"`
		}
		if err := json.Unmarshal(raw, &res); err != nil {
			return nil, nil, fmt.Errorf("the server's tool list is malformed: %w", err)
		}
		for _, def := range res.Tools {
			t, err := p.tool(def, s.peer.Era)
			if err != nil {
				warnings = append(warnings, err.Error())
				continue
			}
			if !p.cfg.Server.Allows(t.spec.Name) {
				continue
			}
			next[t.hash] = t
			out = append(out, t)
		}
		if res.NextCursor == "" {
			break
		}
		if len(res.NextCursor) > maxCursor || seen[res.NextCursor] || len(out) > maxListed {
			warnings = append(warnings, "its tool list never ends; what came so far is offered")
			break
		}
		seen[res.NextCursor] = true
		cursor = res.NextCursor
	}
	p.list.mu.Lock()
	p.list.tool = next
	p.list.mu.Unlock()
	return out, warnings, nil
}

// tool opens one definition, or returns the tool that had the same one before.
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
	t := &remote{p: p, hash: hash, native: native}
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
		Annotations: d.Annotations, Kind: tool.KindNetwork, Timeout: tool.OwnTimeout, Validate: p.cfg.Server.Validate, Native: native.Raw(),
	}
	return t, nil
}

// validHeaders checks x-mcp-header annotations with the library, which a hostile
// schema must not be able to bring down.
func validHeaders(t *mcp.Tool) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("unreadable annotation")
		}
	}()
	return mcp.ValidateParamHeaderAnnotations(t)
}
