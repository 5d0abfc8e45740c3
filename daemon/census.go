package daemon

import (
	"os"
	"sync"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/internal/journal"
)

// census counts who else may call, from the file of the control log: for a process that has
// no control plane, since another one may be writing the log. It is safe for concurrent use.
type census struct {
	data *os.Root
	log  zerolog.Logger

	mu      sync.Mutex
	tail    *local.Tail
	known   *auth.Authority // nil before the first count, and after one that failed
	failing bool
}

// enrolled returns how many devices and lasting tokens there are. While that is unknown
// there is one: whoever asks must not take the user for the only one who can call.
func (c *census) enrolled() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.count()
	if err != nil { // the log may have been replaced, by a restored one or in a cleanup
		c.known = nil
		err = c.count()
	}
	if err == nil {
		c.failing = false
		return c.known.Enrolled()
	}
	if !c.failing { // told once, until it can be read again
		c.log.Warn().Err(err).Msg("who else may call cannot be read from the control log: arguments and results of calls are not recorded")
	}
	c.known, c.failing = nil, true
	return 1
}

// count applies the entries that are new; mu is held.
func (c *census) count() error {
	if c.known == nil {
		known := auth.NewCensus()
		tail, err := local.Resume(journal.Root(c.data), known)
		if err != nil {
			return err
		}
		c.known, c.tail = known, tail
	}
	return c.tail.Next(c.known.Apply)
}
