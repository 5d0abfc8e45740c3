//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
)

func stat(pid, parent, user, sys, pages int, name string) string {
	return fmt.Sprintf("%d (%s) S %d 7 7 0 -1 4194304 100 0 0 0 %d %d 5 6 20 0 1 0 %d 1000000 %d 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0", pid, name, parent, user, sys, 1000+pid, pages)
}

// proc makes a folder like /proc.
func proc(t *testing.T, files, links map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name string, write func(path string) error) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := write(path); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		put(name, func(path string) error { return os.WriteFile(path, []byte(content), 0o600) })
	}
	for name, to := range links {
		put(name, func(path string) error { return os.Symlink(to, path) })
	}
	return dir
}

func TestUsage(t *testing.T) {
	dir := proc(t, map[string]string{
		"10/stat": stat(10, 1, 1, 0, 100, "peer"), "11/stat": stat(11, 10, 2, 0, 10, "child"), "12/stat": stat(12, 11, 4, 0, 1, "upstream"),
		"13/stat": stat(13, 1, 8, 0, 1000, "other"), "self/stat": "not a process",
	}, map[string]string{"10/exe": "/bin/peer", "11/exe": "/bin/peer", "12/exe": "/bin/up", "13/exe": "/bin/peer"})
	all, err := processes(dir)
	if err != nil || len(all) != 4 {
		t.Fatalf("processes() = %v, %v; want 4", all, err)
	}
	got := used(dir, tree(all, 10), "/bin/up")
	if want := (usage{30 * time.Millisecond, 110 * int64(os.Getpagesize())}); got != want {
		t.Errorf("used() = %+v, want %+v: a peer and its child, without the upstream and others", got, want)
	}
}

func TestElsewhere(t *testing.T) {
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	line := func(addr, inode string) string {
		return " 0: " + addr + ":1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 " + inode + " 1 0 100 0 0 10 0\n"
	}
	connected := strings.Replace(line("0200000A", "111"), " 0A ", " 01 ", 1)
	tables := head + connected + line("0100007F", "111") + line("00000000", "222") + line("0200000A", "333")
	dir := proc(t, map[string]string{
		"10/net/tcp": tables, "10/net/tcp6": head, "11/net/tcp": tables, "12/net/tcp": tables,
		"12/net/tcp6": head + line("00000000000000000000000000000000", "555"),
		"13/net/tcp":  head, "13/net/tcp6": head + line("00000000000000000000000001000000", "666") + line("0000000000000000FFFF00000100007F", "666"),
	}, map[string]string{
		"10/fd/3": "socket:[111]", "10/fd/4": "/dev/null", "11/fd/3": "socket:[222]", "11/fd/4": "socket:[999]", "12/fd/9": "socket:[555]", "13/fd/3": "socket:[666]",
	})
	for _, c := range []struct {
		name string
		pids []int
		want []string
	}{
		{"loopback", []int{10}, nil},
		{"every address", []int{10, 11}, []string{"0.0.0.0:8080"}},
		{"every address of IPv6", []int{12}, []string{"[::]:8080"}},
		{"loopback of IPv6", []int{13}, nil},
		{"a process that has ended", []int{99}, nil},
	} {
		var all []process
		for _, pid := range c.pids {
			all = append(all, process{pid: pid})
		}
		if got, err := elsewhere(dir, all); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: elsewhere() = %v, %v; want %v", c.name, got, err, c.want)
		}
	}
}

// A group ends with everything it has started, in other sessions too.
func TestGroupEndsWhole(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("/proc is needed")
	}
	dir := t.TempDir()
	g, err := startGroup(dir, []string{"/bin/sh", "-c", `trap "" TERM; echo "$HOME" > home; sleep 600 & (setsid sleep 601 &) ; sleep 602`}, nil)
	if err != nil {
		t.Fatalf("startGroup() = %v, want no error", err)
	}
	var all []process
	eventually.True(t, "the group has four processes", func() bool {
		all, err = g.members()
		return err == nil && len(all) >= 4
	})
	if home, err := os.ReadFile(filepath.Join(dir, "home")); err != nil || string(home) != dir+"\n" {
		t.Errorf("HOME = %q, %v; want %q", home, err, dir)
	}
	begun := time.Now()
	if err := g.stop(); err != nil {
		t.Errorf("stop() = %v, want no error", err)
	}
	if took := time.Since(begun); took > grace+eventually.Limit {
		t.Errorf("stop() took %v, want at most the grace of %v and a little", took, grace)
	}
	for _, p := range all {
		eventually.True(t, "a process of the group has ended: "+strconv.Itoa(p.pid), func() bool {
			now, err := processes("/proc")
			return err == nil && !slices.ContainsFunc(now, func(n process) bool { return n.pid == p.pid && n.started == p.started && n.state != "Z" })
		})
	}
}
