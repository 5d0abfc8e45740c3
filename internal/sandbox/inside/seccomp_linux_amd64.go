package inside

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// x32 marks the calls of the x32 ABI, which have numbers of their own.
const x32 = 0x40000000

func archFilter() []unix.SockFilter {
	return []unix.SockFilter{load(dataNr), jump(unix.BPF_JGE, x32, 0, 1), ret(fail(unix.ENOSYS))}
}

var archDenied = []uint32{unix.SYS_KEXEC_FILE_LOAD, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS__SYSCTL, unix.SYS_CREATE_MODULE}
