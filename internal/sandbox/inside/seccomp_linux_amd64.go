package inside

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// x32 marks the calls of the x32 ABI, which have numbers of their own.
const x32 = 0x40000000

func archFilter() []unix.SockFilter {
	return []unix.SockFilter{load(dataNr), jump(unix.BPF_JGE, x32, 0, 1), ret(fail(unix.ENOSYS))}
}

var archDenied = []uint32{unix.SYS_KEXEC_FILE_LOAD, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS__SYSCTL, unix.SYS_CREATE_MODULE}

var (
	archAttributes = []attribute{
		{nr: unix.SYS_CHMOD, dir: none, path: 0, flags: none, rest: 1, change: changeMode},
		{nr: unix.SYS_CHOWN, dir: none, path: 0, flags: none, rest: 1, change: changeOwner},
		{nr: unix.SYS_LCHOWN, dir: none, path: 0, flags: none, rest: 1, change: changeOwner, link: true},
		{nr: unix.SYS_UTIME, dir: none, path: 0, flags: none, rest: 1, change: changeTimes, unit: seconds},
		{nr: unix.SYS_UTIMES, dir: none, path: 0, flags: none, rest: 1, change: changeTimes, unit: microseconds},
		{nr: unix.SYS_FUTIMESAT, dir: 0, path: 1, flags: none, rest: 2, change: changeTimes, unit: microseconds},
	}
	archMakes = []makes{{unix.SYS_OPEN, 1, 2}, {unix.SYS_CREAT, none, 1}, {unix.SYS_MKNOD, none, 1}}
)
