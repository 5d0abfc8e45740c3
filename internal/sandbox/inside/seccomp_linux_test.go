package inside

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// verdict runs a filter as the kernel does, for the instructions that it uses.
func verdict(t *testing.T, prog []unix.SockFilter, arch, nr uint32, args ...uint64) uint32 {
	t.Helper()
	data := make([]byte, 64)
	binary.LittleEndian.PutUint32(data[dataNr:], nr)
	binary.LittleEndian.PutUint32(data[dataArch:], arch)
	for i, a := range args {
		binary.LittleEndian.PutUint64(data[dataArgs+8*i:], a)
	}
	var acc uint32
	for pc := 0; pc < len(prog); pc++ {
		in := prog[pc]
		jump := func(yes bool) {
			if yes {
				pc += int(in.Jt)
			} else {
				pc += int(in.Jf)
			}
		}
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = binary.LittleEndian.Uint32(data[in.K:])
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			acc &= in.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(acc == in.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(acc&in.K != 0)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(acc >= in.K)
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		default:
			t.Fatalf("instruction %d has the code %#x", pc, in.Code)
		}
	}
	t.Fatal("the filter ends without a verdict")
	return 0
}

// both runs both filters of a sandbox, as the kernel does for the program.
func (f Filter) both(t *testing.T, arch, nr uint32, args ...uint64) uint32 {
	t.Helper()
	said := verdict(t, f.program(), arch, nr, args...)
	if said == unix.SECCOMP_RET_USER_NOTIF {
		t.Errorf("the filter of the keeper asks about call %d: nobody answers it", nr)
	}
	if prog := f.asking(); said == retAllow && prog != nil {
		return verdict(t, prog, arch, nr, args...)
	}
	return said
}

func TestFilter(t *testing.T) {
	const (
		i386  = unix.AUDIT_ARCH_I386
		allow = uint32(retAllow)
		newNS = unix.CLONE_NEWUSER
	)
	usual, browser := Filter{Unix: true}, Filter{Unix: true, Nested: true}
	closed, alone := Filter{}, Filter{NoInet: true}
	shared, refused := Filter{Shared: true}, Filter{Shared: true, refuse: true}
	asked := uint32(unix.SECCOMP_RET_USER_NOTIF)
	eperm, enosys := fail(unix.EPERM), fail(unix.ENOSYS)
	for _, c := range []struct {
		name   string
		filter Filter
		arch   uint32
		nr     uint32
		args   []uint64
		want   uint32
	}{
		{"read", usual, auditArch, unix.SYS_READ, nil, allow},
		{"a limit", usual, auditArch, unix.SYS_SETRLIMIT, []uint64{unix.RLIMIT_NOFILE, 1}, allow},
		{"the limit of the mark", usual, auditArch, unix.SYS_SETRLIMIT, []uint64{1<<32 | unix.RLIMIT_LOCKS, 1}, eperm},
		{"the limit of the mark by another call", usual, auditArch, unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_LOCKS, 8, 0}, eperm},
		{"the limit of the mark, new value at a high address", shared, auditArch, unix.SYS_PRLIMIT64, []uint64{0, 1<<32 | unix.RLIMIT_LOCKS, 8 << 32, 0}, eperm},
		{"reading the limit of the mark", usual, auditArch, unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_LOCKS, 0, 8}, allow},
		{"reading the limit of the mark of another process", shared, auditArch, unix.SYS_PRLIMIT64, []uint64{7, unix.RLIMIT_LOCKS, 0, 8}, allow},
		{"a limit by another call", usual, auditArch, unix.SYS_PRLIMIT64, []uint64{7, unix.RLIMIT_NOFILE, 8, 0}, allow},
		{"execve", closed, auditArch, unix.SYS_EXECVE, nil, allow},
		{"a call of i386", usual, i386, 102, nil, enosys},
		{"a call of another architecture", usual, unix.AUDIT_ARCH_RISCV64, unix.SYS_READ, nil, enosys},
		{"TCP", usual, auditArch, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, 0}, allow},
		{"TCP by its number", usual, auditArch, unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_TCP}, allow},
		{"UDP", usual, auditArch, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_DGRAM | unix.SOCK_NONBLOCK, unix.IPPROTO_UDP}, allow},
		{"ping", usual, auditArch, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP}, allow},
		{"MPTCP", usual, auditArch, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM, 262}, fail(unix.EPROTONOSUPPORT)},
		{"SCTP", usual, auditArch, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM, 132}, fail(unix.EPROTONOSUPPORT)},
		{"a raw socket", usual, auditArch, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, eperm},
		{"high bits in the family", usual, auditArch, unix.SYS_SOCKET, []uint64{1<<32 | unix.AF_VSOCK, unix.SOCK_STREAM, 0}, fail(unix.EAFNOSUPPORT)},
		{"AF_UNIX", usual, auditArch, unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 0}, allow},
		{"AF_UNIX, closed", closed, auditArch, unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 0}, fail(unix.EAFNOSUPPORT)},
		{"a pair of sockets for datagrams", usual, auditArch, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM, 0}, allow},
		{"a pair of sockets for datagrams, closed", closed, auditArch, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC, 0}, fail(unix.EAFNOSUPPORT)},
		{"a pair of raw sockets, closed", closed, auditArch, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_RAW, 0}, fail(unix.EAFNOSUPPORT)},
		{"a pair of sockets for packets, closed", closed, auditArch, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET | unix.SOCK_NONBLOCK, 0}, allow},
		{"a pair of sockets of another family", usual, auditArch, unix.SYS_SOCKETPAIR, []uint64{unix.AF_TIPC, unix.SOCK_STREAM, 0}, fail(unix.EAFNOSUPPORT)},
		{"a pair of sockets, closed", closed, auditArch, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 0}, allow},
		{"routes", closed, auditArch, unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, allow},
		{"sock_diag", usual, auditArch, unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_DGRAM, unix.NETLINK_SOCK_DIAG}, fail(unix.EAFNOSUPPORT)},
		{"vsock", usual, auditArch, unix.SYS_SOCKET, []uint64{unix.AF_VSOCK, unix.SOCK_STREAM, 0}, fail(unix.EAFNOSUPPORT)},
		{"packet", usual, auditArch, unix.SYS_SOCKET, []uint64{unix.AF_PACKET, unix.SOCK_RAW, 0}, fail(unix.EAFNOSUPPORT)},
		{"no network", alone, auditArch, unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_DGRAM, 0}, fail(unix.EACCES)},
		{"no network, routes", alone, auditArch, unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, allow},
		{"no network, vsock", alone, auditArch, unix.SYS_SOCKET, []uint64{unix.AF_VSOCK, unix.SOCK_STREAM, 0}, fail(unix.EAFNOSUPPORT)},
		{"send", usual, auditArch, unix.SYS_SENDTO, []uint64{3, 0, 0, unix.MSG_NOSIGNAL}, allow},
		{"fast open by sendto", usual, auditArch, unix.SYS_SENDTO, []uint64{3, 0, 0, unix.MSG_FASTOPEN | unix.MSG_NOSIGNAL}, fail(unix.EOPNOTSUPP)},
		{"fast open by sendmsg", usual, auditArch, unix.SYS_SENDMSG, []uint64{3, 0, unix.MSG_FASTOPEN}, fail(unix.EOPNOTSUPP)},
		{"fast open by sendmmsg", usual, auditArch, unix.SYS_SENDMMSG, []uint64{3, 0, 1, unix.MSG_FASTOPEN}, fail(unix.EOPNOTSUPP)},
		{"window size", usual, auditArch, unix.SYS_IOCTL, []uint64{0, unix.TIOCGWINSZ}, allow},
		{"TIOCSTI", usual, auditArch, unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI}, eperm},
		{"TIOCSTI with high bits", browser, auditArch, unix.SYS_IOCTL, []uint64{0, 1<<32 | unix.TIOCSTI}, eperm},
		{"TIOCLINUX", usual, auditArch, unix.SYS_IOCTL, []uint64{0, tioclinux}, eperm},
		{"a thread", usual, auditArch, unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND}, allow},
		{"a user namespace", usual, auditArch, unix.SYS_CLONE, []uint64{newNS | uint64(unix.SIGCHLD)}, eperm},
		{"a user namespace of a browser", browser, auditArch, unix.SYS_CLONE, []uint64{newNS | uint64(unix.SIGCHLD)}, allow},
		{"unshare", usual, auditArch, unix.SYS_UNSHARE, []uint64{newNS}, eperm},
		{"unshare of a browser", browser, auditArch, unix.SYS_UNSHARE, []uint64{newNS}, allow},
		{"clone3", browser, auditArch, unix.SYS_CLONE3, nil, enosys},
		{"io_uring", browser, auditArch, unix.SYS_IO_URING_SETUP, nil, enosys},
		{"ptrace", browser, auditArch, unix.SYS_PTRACE, nil, eperm},
		{"mount", browser, auditArch, unix.SYS_MOUNT, nil, eperm},
		{"setns", browser, auditArch, unix.SYS_SETNS, nil, eperm},
		{"bpf", usual, auditArch, unix.SYS_BPF, nil, eperm},
		{"a limit of another, with ids of its own", usual, auditArch, unix.SYS_PRLIMIT64, []uint64{7, 0, 1}, allow},
		{"a limit of its own", shared, auditArch, unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_NOFILE, 0x7f0000000000}, allow},
		{"read a limit of another", shared, auditArch, unix.SYS_PRLIMIT64, []uint64{7, unix.RLIMIT_NOFILE, 0, 0x7f0000000000}, allow},
		{"a limit of another", shared, auditArch, unix.SYS_PRLIMIT64, []uint64{7, unix.RLIMIT_NOFILE, 0x7f0000000000}, asked},
		{"a limit of another, at 4 GiB", shared, auditArch, unix.SYS_PRLIMIT64, []uint64{7, unix.RLIMIT_NOFILE, 1 << 32}, asked},
		{"a limit of another, nobody to ask", refused, auditArch, unix.SYS_PRLIMIT64, []uint64{7, unix.RLIMIT_NOFILE, 1}, eperm},
		{"processors of its own", shared, auditArch, unix.SYS_SCHED_SETAFFINITY, []uint64{0, 8, 1}, allow},
		{"processors of another", shared, auditArch, unix.SYS_SCHED_SETAFFINITY, []uint64{7, 8, 1}, asked},
		{"scheduler of another", shared, auditArch, unix.SYS_SCHED_SETSCHEDULER, []uint64{7}, asked},
		{"parameters of another", shared, auditArch, unix.SYS_SCHED_SETPARAM, []uint64{7}, asked},
		{"attributes of another", shared, auditArch, unix.SYS_SCHED_SETATTR, []uint64{7}, asked},
		{"its own priority", shared, auditArch, unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PROCESS, 0, 5}, allow},
		{"priority of another", shared, auditArch, unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PROCESS, 7, 5}, asked},
		{"priority of its group, where others may be", shared, auditArch, unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PGRP, 0, 5}, eperm},
		{"priority of all of the user's", shared, auditArch, unix.SYS_SETPRIORITY, []uint64{unix.PRIO_USER, 0, 5}, eperm},
		{"its own input and output", shared, auditArch, unix.SYS_IOPRIO_SET, []uint64{1, 0, 0}, allow},
		{"input and output of another", shared, auditArch, unix.SYS_IOPRIO_SET, []uint64{1, 7, 0}, asked},
		{"input and output of all of the user's", shared, auditArch, unix.SYS_IOPRIO_SET, []uint64{3, 0, 0}, eperm},
		{"files by handle", usual, auditArch, unix.SYS_OPEN_BY_HANDLE_AT, nil, eperm},
	} {
		if got := c.filter.both(t, c.arch, c.nr, c.args...); got != c.want {
			t.Errorf("%s: verdict %#x, want %#x", c.name, got, c.want)
		}
	}
	for _, f := range []Filter{usual, browser, closed, alone, shared, refused} {
		if n := len(f.program()) + len(f.asking()); n > 4096 {
			t.Errorf("the filters have %d instructions; the kernel takes 4096", n)
		}
	}
}
