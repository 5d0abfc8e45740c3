package inside

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data. Arguments are two words each, the low one first
// on the architectures there are filters for.
const (
	dataNr   = 0
	dataArch = 4
	dataArgs = 16
)

func low(arg int) uint32 { return uint32(dataArgs + 8*arg) } //nolint:gosec // 0 to 5

// Actions.
const retAllow = unix.SECCOMP_RET_ALLOW

func fail(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) } //nolint:gosec // small

func load(off uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: off}
}

func ret(action uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
}

func jump(kind uint16, k uint32, yes, no int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | kind | unix.BPF_K, K: k, Jt: uint8(yes), Jf: uint8(no)} //nolint:gosec // short programs
}

func equal(k uint32, yes, no int) unix.SockFilter { return jump(unix.BPF_JEQ, k, yes, no) }
func set(k uint32, yes, no int) unix.SockFilter   { return jump(unix.BPF_JSET, k, yes, no) }

// when runs a part of a program for one system call. The part begins with any
// accumulator, and must end in a verdict on every way.
func when(nr uint32, part ...unix.SockFilter) []unix.SockFilter {
	return append([]unix.SockFilter{load(dataNr), equal(nr, 0, len(part))}, part...)
}

// denied are refused whatever their arguments are. They enter other namespaces,
// inspect other processes, or reach parts of the kernel that no ordinary program
// needs.
var denied = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT, unix.SYS_LOOKUP_DCOOKIE,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSCONFIG,
	unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_OPEN_TREE_ATTR, unix.SYS_ACCT,
	unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT, unix.SYS_SYSLOG,
	unix.SYS_SETNS, unix.SYS_VHANGUP, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME,
}

// missing are the calls that the filter reports as missing, so that programs use older
// ones: the filter cannot read the arguments of clone3, which are behind a pointer, and
// io_uring bypasses every filter.
var missing = []uint32{unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER}

const (
	newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	socketType    = 0xf // of the argument type, without its flags
	tioclinux     = 0x541c
)

// program is the filter for system calls that holds for the keeper as well.
func (f Filter) program() []unix.SockFilter {
	prog := []unix.SockFilter{load(dataArch), equal(auditArch, 1, 0), ret(fail(unix.ENOSYS))}
	prog = append(prog, archFilter()...)
	prog = append(prog, when(unix.SYS_SOCKET, f.socket()...)...)
	prog = append(prog, when(unix.SYS_SOCKETPAIR, f.socketPair()...)...)
	for _, call := range []struct {
		nr    uint32
		flags int // the argument
	}{{unix.SYS_SENDTO, 3}, {unix.SYS_SENDMSG, 2}, {unix.SYS_SENDMMSG, 3}} {
		prog = append(prog, when(call.nr, load(low(call.flags)), set(unix.MSG_FASTOPEN, 0, 1), ret(fail(unix.EOPNOTSUPP)), ret(retAllow))...)
	}
	prog = append(prog, when(unix.SYS_IOCTL, f.ioctl()...)...)
	all := denied
	if !f.Nested {
		prog = append(prog, when(unix.SYS_CLONE, load(low(0)), set(newNamespaces, 0, 1), ret(fail(unix.EPERM)), ret(retAllow))...)
		all = append(all[:len(all):len(all)], unix.SYS_UNSHARE, unix.SYS_CHROOT)
	}
	all = append(all[:len(all):len(all)], archDenied...)
	prog = append(prog, load(dataNr))
	for _, nr := range f.unsupported() {
		prog = append(prog, equal(nr, 0, 1), ret(fail(unix.EOPNOTSUPP)))
	}
	for _, nr := range slices.Concat(missing, f.missing()) {
		prog = append(prog, equal(nr, 0, 1), ret(fail(unix.ENOSYS)))
	}
	for _, nr := range all {
		prog = append(prog, equal(nr, 0, 1), ret(fail(unix.EPERM)))
	}
	return append(prog, ret(retAllow))
}

// socket lets through the families and protocols that the network namespace, Landlock
// and the mounts bound. Landlock's rules for TCP do not see MPTCP; virtual machines
// reach their host by AF_VSOCK from every network namespace; sock_diag shows the
// connections of others.
func (f Filter) socket() []unix.SockFilter {
	refuse := ret(fail(unix.EAFNOSUPPORT))
	var prog []unix.SockFilter
	add := func(s ...unix.SockFilter) { prog = append(prog, s...) }
	add(load(low(0)))
	if f.Unix {
		add(equal(unix.AF_UNIX, 0, 1), ret(retAllow))
	}
	add(equal(unix.AF_NETLINK, 0, 3), load(low(2)), equal(unix.NETLINK_ROUTE, 0, 1), ret(retAllow))
	add(load(low(0)))
	if f.NoInet {
		add(equal(unix.AF_INET, 0, 1), ret(fail(unix.EACCES)), equal(unix.AF_INET6, 0, 1), ret(fail(unix.EACCES)))
		add(refuse)
		return prog
	}
	add(equal(unix.AF_INET, 2, 0), equal(unix.AF_INET6, 1, 0), refuse)
	add(load(low(1)), unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: socketType})
	add(equal(unix.SOCK_STREAM, 2, 0), equal(unix.SOCK_DGRAM, 1, 0), ret(fail(unix.EPERM)))
	add(load(low(2)))
	for _, proto := range []uint32{0, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6} {
		add(equal(proto, 0, 1), ret(retAllow))
	}
	add(ret(fail(unix.EPROTONOSUPPORT)))
	return prog
}

// socketPair lets through pairs of AF_UNIX. Where no socket of that family may be opened,
// neither are those of datagrams: each of a pair reaches every other one by its path.
func (f Filter) socketPair() []unix.SockFilter {
	refuse := ret(fail(unix.EAFNOSUPPORT))
	prog := []unix.SockFilter{load(low(0)), equal(unix.AF_UNIX, 1, 0), refuse}
	if !f.Unix {
		prog = append(prog, load(low(1)), unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: socketType},
			equal(unix.SOCK_STREAM, 2, 0), equal(unix.SOCK_SEQPACKET, 1, 0), refuse)
	}
	return append(prog, ret(retAllow))
}

// asking is the filter for what the program alone is bounded in: the keeper answers its
// calls, and makes some of them itself.
func (f Filter) asking() []unix.SockFilter {
	prog := slices.Concat(f.limits(), f.others(), f.attributes(), f.special())
	return append(prog, ret(retAllow))
}

// ask returns the filter's action for a call that the keeper answers.
func (f Filter) ask() uint32 {
	if f.refuse {
		return fail(unix.EPERM)
	}
	return unix.SECCOMP_RET_USER_NOTIF
}

// install puts the filters on all threads, and on this one, which starts the program.
// no_new_privs must be set. It returns the descriptor that calls are handed to, -1 where
// there are none. In a filter that already has one, such as that of another sandbox, they
// are refused.
func (f Filter) install() (asked int, err error) {
	if auditArch == 0 {
		return -1, errors.New("there is no filter of system calls for this architecture: the sandbox needs amd64 or arm64")
	}
	f.root = unix.Geteuid() == 0
	if _, err := apply(f.program(), unix.SECCOMP_FILTER_FLAG_TSYNC); err != nil {
		return -1, fmt.Errorf("install the filter of system calls: %w", err)
	}
	if f.Shared || f.Files {
		// Before Linux 5.19, a signal to the caller has it call again.
		for _, flags := range []uintptr{unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER} {
			if asked, err := apply(f.asking(), flags); err == nil {
				return asked, nil
			}
		}
		f.refuse = true
	}
	if _, err := apply(f.asking(), 0); err != nil {
		return -1, fmt.Errorf("install the filter of system calls: %w", err)
	}
	return -1, nil
}

// apply puts a filter on this thread, or by its flags on all.
func apply(prog []unix.SockFilter, flags uintptr) (int, error) {
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}                                                    //nolint:gosec // some hundred
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&fprog))) //nolint:gosec // the kernel's interface
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil //nolint:gosec // a descriptor
}
