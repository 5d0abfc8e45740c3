package admin

import (
	"cmp"
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
func (x *toolIndex) search(s *tool.Snapshot, query string, limit int) []string {
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
	out := []string{}
	for _, i := range x.index.Search(query, limit) {
		out = append(out, x.names[i])
	}
	return out
}
