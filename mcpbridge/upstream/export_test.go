package upstream

import (
	"context"
	"io"

	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/intake"
)

// Exported for tests of this package alone.
var (
	Normalise = normalise
)

// ReadLines reads lines as those of a server are read; lost is called for those above
// the limit.
func ReadLines(r io.Reader, limit int, line func([]byte, *bufpool.Buffer) error, lost func(head, tail []byte) bool) error {
	l := newLines(r, room{limit: limit, scratch: intake.TempFile})
	l.line, l.lost = line, func(head, tail []byte, _ error) bool { return lost(head, tail) }
	return l.read(context.Background())
}
