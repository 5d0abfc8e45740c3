// Package openfiles divides the descriptors that this process may have open (RLIMIT_NOFILE) between
// its parts, so that none of them can use up those of the others: without a descriptor yaya can
// neither write a tape nor find out who connects. Its functions are safe for concurrent use.
package openfiles

import (
	"errors"
	"fmt"

	"github.com/yaya-ai/yaya/internal/errnos"
)

// Enough is the limit from which on no share is small.
const Enough = 4096

// Shares are the parts of a limit, in descriptors. A sixth is left for servers, for the
// models' connections and for everything that is open for a moment.
type Shares struct {
	Connections int // of the gateway's listener
	Sandboxes   int // connections and listeners of sandboxes; each takes two descriptors
	Tapes       int // of sessions
}

// Of divides a limit.
func Of(limit uint64) Shares {
	part := func(of, least, most uint64) int {
		return int(max(min(limit/of, most), least)) //nolint:gosec // bounded
	}
	return Shares{Connections: part(2, 64, 32<<10), Sandboxes: part(5, 64, 64<<10), Tapes: part(8, 16, 256)}
}

// Warning says what a limit means, and how to raise it; "" for one that is high enough.
func Warning(limit uint64) string {
	if limit >= Enough {
		return ""
	}
	s := Of(limit)
	return fmt.Sprintf("yaya may have %d files open, so it serves at most %d connections and keeps %d tapes open: raise the limit to %d or more (ulimit -n %[4]d before yaya starts, or LimitNOFILE=%[4]d in its systemd unit)", limit, s.Connections, s.Tapes, Enough)
}

// Exhausted reports whether an error says that this process, or the machine, has no descriptor left.
func Exhausted(err error) bool {
	return errors.Is(err, errnos.TooManyFiles) || errors.Is(err, errnos.SystemFiles)
}
