package daemon

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/yaya-ai/yaya/plugins/memory_sqlite"
)

// Memory is a memory of agents.
type Memory = memory_sqlite.Memory

// MemoryFilter selects memories.
type MemoryFilter = memory_sqlite.Filter

// Memories returns memories of agents, the newest first and at most limit. A yaya that runs may use them meanwhile.
func (g *Flags) Memories(ctx context.Context, f MemoryFilter, limit int) (out []Memory, err error) {
	err = g.withMemory(func(path string) (err error) {
		out, err = memory_sqlite.List(ctx, path, f, limit)
		return err
	})
	return out, err
}

// RemoveMemories removes memories of agents, and returns how many. A yaya that runs may use them meanwhile.
func (g *Flags) RemoveMemories(ctx context.Context, f MemoryFilter) (n int, err error) {
	err = g.withMemory(func(path string) (err error) {
		n, err = memory_sqlite.Remove(ctx, path, f)
		return err
	})
	return n, err
}

// withMemory calls f with the file of the memory.
func (g *Flags) withMemory(f func(path string) error) error {
	p, err := g.Paths()
	if err != nil {
		return err
	}
	data, err := p.OpenData()
	if err != nil {
		return err
	}
	return errors.Join(f(filepath.Join(data.Name(), memoryFile)), data.Close())
}
