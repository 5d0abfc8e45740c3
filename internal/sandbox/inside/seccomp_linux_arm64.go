package inside

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

func archFilter() []unix.SockFilter { return nil }

var archDenied = []uint32{unix.SYS_KEXEC_FILE_LOAD}

var (
	archAttributes []attribute
	archMakes      []makes
)
