package admin

import (
	"cmp"
	"context"
	"sync"

	"github.com/yaya-ai/yaya/internal/toolsearch"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// toolIndex finds the offered tools by what they do. Its index is that of one snapshot,
// rebuilt at the first search of another one. The zero value is ready; methods
// are safe for concurrent use.
type toolIndex struct {
	mu    sync.Mutex
	of    *tool.Snapshot
	names []string
	index *toolsearch.Index
}

// search returns the names of at most limit tools, best first.
func (x *toolIndex) search(ctx context.Context, by *toolsearch.Embeddings, s *tool.Snapshot, query string, limit int) []string {
	names, index := x.at(s)
	out := []string{}
	for _, i := range by.Search(ctx, index, query, limit) {
		out = append(out, names[i])
	}
	return out
}

// at returns the names of a snapshot's tools, and their index.
func (x *toolIndex) at(s *tool.Snapshot) ([]string, *toolsearch.Index) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.of != s {
		x.of, x.names = s, nil
		var tools []toolsearch.Tool
		for e := range s.All() {
			if e.Hidden {
				continue
			}
			x.names = append(x.names, e.Def.Name)
			tools = append(tools, toolsearch.Tool{
				Server: e.Def.Identity.Provider, Name: cmp.Or(e.Def.Identity.Tool, e.Def.Name),
				Title: e.Def.Title, Description: e.Def.Description, Arguments: toolsearch.Arguments(e.Def.InputSchema),
			})
		}
		x.index = toolsearch.New(tools)
	}
	return x.names, x.index
}
