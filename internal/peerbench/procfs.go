//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/procfs"
)

// process is one line of the table of processes.
type process struct {
	pid, parent int
	started     uint64 // in ticks since boot: tells a process from a later one with its id
	cpu         time.Duration
	rss         int64 // bytes
	state       string
}

// tick is the unit of processor time in /proc, on every system Go runs on.
const tick = 10 * time.Millisecond

// processes reads the table of processes below proc, which is /proc. One that
// ends meanwhile is left out.
func processes(proc string) ([]process, error) {
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return nil, err
	}
	all, err := fs.AllProcs()
	if err != nil {
		return nil, err
	}
	var out []process
	for _, p := range all {
		st, err := p.Stat()
		if err != nil {
			continue
		}
		out = append(out, process{
			pid: st.PID, parent: st.PPID, started: st.Starttime,
			cpu: time.Duration(st.UTime+st.STime) * tick, rss: int64(st.ResidentMemory()), state: st.State, //nolint:gosec // times fit
		})
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

// listening is the state of a socket that listens.
const listening = 0x0A

// elsewhere lists the addresses that are not loopback on which one of the
// processes listens, each in its own network namespace.
func elsewhere(proc string, processes []process) ([]string, error) {
	var out []string
	for _, p := range processes {
		dir := filepath.Join(proc, strconv.Itoa(p.pid))
		inodes, err := sockets(proc, p.pid)
		if err != nil && !gone(dir) {
			return nil, err
		}
		if len(inodes) == 0 {
			continue
		}
		own, err := procfs.NewFS(dir) // has the tables of the process's network
		if err != nil {
			if gone(dir) {
				continue
			}
			return nil, err
		}
		for _, table := range []func() (procfs.NetTCP, error){own.NetTCP, own.NetTCP6} { //nolint:staticcheck // netlink, which is preferred, shows the own network alone
			lines, err := table()
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !gone(dir) { // a system without IPv6, or an ended process
				return nil, err
			}
			for _, l := range lines {
				if l.St == listening && inodes[l.Inode] && !l.LocalAddr.IsLoopback() {
					out = append(out, net.JoinHostPort(l.LocalAddr.String(), strconv.FormatUint(l.LocalPort, 10)))
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
func sockets(proc string, pid int) (map[uint64]bool, error) {
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return nil, err
	}
	p, err := fs.Proc(pid)
	if err != nil {
		return nil, err
	}
	targets, err := p.FileDescriptorTargets()
	if err != nil {
		return nil, err
	}
	out := map[uint64]bool{}
	for _, to := range targets {
		var inode uint64
		if n, _ := fmt.Sscanf(to, "socket:[%d]", &inode); n == 1 {
			out[inode] = true
		}
	}
	return out, nil
}
