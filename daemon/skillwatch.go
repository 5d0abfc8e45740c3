package daemon

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

// skillsEach is how often yaya looks whether skills have changed, while an MCP client has a stream on
// which it could be told.
const skillsEach = 10 * time.Second

// watchSkills tells MCP clients that the list of prompts has changed when skills have, until end is
// called. Nothing watches the folders of skills: they come and go, and a look costs little.
func watchSkills(listening func() bool, list func(context.Context) ([]byte, error), changed func()) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		tick := time.NewTicker(skillsEach)
		defer tick.Stop()
		var was [sha256.Size]byte
		known := false
		for {
			// Without a listener there is nobody to tell: the next look finds what has changed since.
			if !known || listening() {
				if raw, err := list(ctx); err == nil {
					is := sha256.Sum256(raw)
					if known && is != was {
						changed()
					}
					was, known = is, true
				}
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		work.Wait()
	}
}

// listed returns the prompts of all skills, in one piece.
func (s skillPrompts) listed(ctx context.Context) (out []byte, err error) {
	all, err := s.List(ctx, relay.Prompts)
	for _, o := range all {
		out = append(out, o.Raw()...)
	}
	return out, err
}
