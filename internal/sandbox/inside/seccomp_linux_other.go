//go:build linux && !amd64 && !arm64

package inside

import "golang.org/x/sys/unix"

// auditArch is unknown: [Filter.install] refuses.
const auditArch = 0

func archFilter() []unix.SockFilter { return nil }

var archDenied []uint32

var (
	archAttributes []attribute
	archMakes      []makes
)
