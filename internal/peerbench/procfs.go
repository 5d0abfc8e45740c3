package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// process is one line of the table of processes.
type process struct {
	pid, parent int
	started     uint64 // in ticks since boot: tells a process from a later one with its id
	cpu         time.Duration
	rss         int64 // bytes
}

// tick is the unit of processor time in /proc, on every system Go runs on.
const tick = 10 * time.Millisecond

// parseStat reads the content of /proc/<pid>/stat. The name, in parentheses, may
// have any byte.
func parseStat(data []byte) (process, error) {
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || end < open {
		return process{}, fmt.Errorf("not a stat file: %.40q", data)
	}
	fields := strings.Fields(string(data[end+1:]))
	if len(fields) < 22 {
		return process{}, fmt.Errorf("stat has %d fields", len(fields))
	}
	number := func(s string, err *error) int64 {
		n, e := strconv.ParseInt(s, 10, 64)
		*err = errors.Join(*err, e)
		return n
	}
	var err error
	p := process{
		pid: int(number(strings.TrimSpace(string(data[:open])), &err)), parent: int(number(fields[1], &err)),
		cpu: time.Duration(number(fields[11], &err)+number(fields[12], &err)) * tick, started: uint64(number(fields[19], &err)), //nolint:gosec // the system counts up from 0
		rss: number(fields[21], &err) * int64(os.Getpagesize()),
	}
	return p, err
}

// processes reads the table of processes below proc, which is /proc. One that
// ends meanwhile is left out.
func processes(proc string) ([]process, error) {
	dirs, err := os.ReadDir(proc)
	if err != nil {
		return nil, err
	}
	var out []process
	for _, d := range dirs {
		if _, err := strconv.Atoi(d.Name()); err != nil {
			continue
		}
		data, err := os.ReadFile(filepath.Join(proc, d.Name(), "stat"))
		if err != nil {
			continue
		}
		p, err := parseStat(data)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// tree is a process with all that descend from it.
func tree(all []process, root int) []process {
	var out []process
	in := map[int]bool{root: true}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !in[p.pid] && in[p.parent] {
				in[p.pid], grown = true, true
			}
		}
	}
	for _, p := range all {
		if in[p.pid] {
			out = append(out, p)
		}
	}
	return out
}

// usage is the processor time and resident memory of a tree.
type usage struct {
	cpu time.Duration
	rss int64
}

// used adds up a tree, without the processes that run the program except: they
// are the upstream, whose work is not the gateway's.
func used(proc string, processes []process, except string) usage {
	var u usage
	for _, p := range processes {
		if exe, err := os.Readlink(filepath.Join(proc, strconv.Itoa(p.pid), "exe")); err == nil && exe == except {
			continue
		}
		u.cpu += p.cpu
		u.rss += p.rss
	}
	return u
}

// listener is a listening TCP socket.
type listener struct {
	at    netip.AddrPort
	inode string
}

// parseListeners reads the content of /proc/net/tcp or tcp6.
func parseListeners(data []byte) ([]listener, error) {
	var out []listener
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		f := strings.Fields(line)
		if i == 0 || len(f) < 10 || f[3] != "0A" { // the state LISTEN
			continue
		}
		at, err := parseAddr(f[1])
		if err != nil {
			return nil, err
		}
		out = append(out, listener{at, f[9]})
	}
	return out, nil
}

// parseAddr reads an address: words of four bytes in the machine's order, which
// is little-endian everywhere yaya is built for, and a port.
func parseAddr(s string) (netip.AddrPort, error) {
	host, port, _ := strings.Cut(s, ":")
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil || (len(host) != 8 && len(host) != 32) {
		return netip.AddrPort{}, fmt.Errorf("not an address of a socket: %q", s)
	}
	raw := make([]byte, len(host)/2)
	for i := range raw {
		b, err := strconv.ParseUint(host[2*i:2*i+2], 16, 8)
		if err != nil {
			return netip.AddrPort{}, fmt.Errorf("not an address of a socket: %q", s)
		}
		raw[i/4*4+3-i%4] = byte(b)
	}
	a, _ := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(a.Unmap(), uint16(n)), nil
}

// elsewhere lists the addresses that are not loopback on which one of the
// processes listens, each in its own network namespace.
func elsewhere(proc string, processes []process) ([]string, error) {
	var out []string
	for _, p := range processes {
		dir := filepath.Join(proc, strconv.Itoa(p.pid))
		inodes, err := sockets(dir)
		if err != nil {
			return nil, err
		}
		if len(inodes) == 0 {
			continue
		}
		for _, table := range []string{"tcp", "tcp6"} {
			data, err := os.ReadFile(filepath.Join(dir, "net", table))
			if errors.Is(err, fs.ErrNotExist) || gone(dir) {
				continue // ended, or a system without IPv6
			}
			if err != nil {
				return nil, err
			}
			all, err := parseListeners(data)
			if err != nil {
				return nil, err
			}
			for _, l := range all {
				if inodes[l.inode] && !l.at.Addr().IsLoopback() {
					out = append(out, l.at.String())
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func gone(dir string) bool {
	_, err := os.Stat(dir)
	return errors.Is(err, fs.ErrNotExist)
}

// sockets are the inodes of a process's sockets.
func sockets(dir string) (map[string]bool, error) {
	fds, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		if gone(dir) {
			return nil, nil
		}
		return nil, err
	}
	out := map[string]bool{}
	for _, fd := range fds {
		to, err := os.Readlink(filepath.Join(dir, "fd", fd.Name()))
		if err != nil {
			continue // closed meanwhile
		}
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			out[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return out, nil
}
