//go:build unix

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxProfile bounds a profile.
const maxProfile = 64 << 20

// profile prints where the time of small calls goes, by part of yaya: the profile's share of each
// part, of the processor time that a call takes.
func profile(d *daemon, dir string, r relayRow) error {
	through := &target{addr: d.addr, path: "/mcp", tool: r.Upstream + "__echo"}
	if err := through.open(); err != nil {
		return err
	}
	const seconds = 3
	loaded := make(chan error, 1)
	go func() {
		_, err := through.run(r.InFlight, r.Size, (seconds+1)*time.Second)
		loaded <- err
	}()
	file := filepath.Join(dir, "profile")
	err := fetchProfile(filepath.Join(dir, "d", "yaya.sock"), seconds, file)
	if lerr := <-loaded; err == nil {
		err = lerr
	}
	if err != nil {
		return err
	}
	out, err := exec.Command("go", "tool", "pprof", "-top", "-nodecount=100000", "-nodefraction=0", "-unit=us", file).Output() //nolint:noctx // ends by itself
	if err != nil {
		return fmt.Errorf("go tool pprof: %w", err)
	}
	fmt.Printf("\n| µs of a call (%s, %d in flight, %s) | |\n|---|---|\n", r.Upstream, r.InFlight, sizeName(r.Size))
	for _, p := range partsOf(out) {
		if us := p.share * r.CPU; us >= .1 {
			fmt.Printf("| %s | %.1f |\n", p.name, us)
		}
	}
	fmt.Println()
	return nil
}

func fetchProfile(socket string, seconds int, file string) error {
	c := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	defer c.CloseIdleConnections()
	resp, err := c.Get("http://localhost/debug/pprof/profile?seconds=" + strconv.Itoa(seconds)) //nolint:noctx // bounded by its seconds
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxProfile))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("profile: %s: %.200s", resp.Status, data)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}

// part is a group of functions and its share of the samples.
type part struct {
	name  string
	share float64
}

// partsOf sums what pprof -top prints, by package; the packages of the Go runtime are three parts.
func partsOf(top []byte) []part {
	sums, total := map[string]float64{}, 0.0
	lines := bufio.NewScanner(bytes.NewReader(top))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 6 || !strings.HasSuffix(f[1], "%") || !strings.HasSuffix(f[4], "%") {
			continue
		}
		us, err := strconv.ParseFloat(strings.TrimSuffix(f[0], "us"), 64)
		if err != nil || us == 0 {
			continue
		}
		sums[partOf(f[5])] += us
		total += us
	}
	var out []part
	for name, us := range sums {
		out = append(out, part{name, us / total})
	}
	slices.SortFunc(out, func(a, b part) int {
		return cmp.Or(cmp.Compare(b.share, a.share), cmp.Compare(a.name, b.name))
	})
	return out
}

// memory matches the functions of the Go runtime that allocate, collect and clear memory.
var memory = regexp.MustCompile(`^(\(\*(gc|mcache|mcentral|mheap|mspan|sweep)|gc|greyobject|malloc|memclr|newobject|nextFree|scan)`)

// partOf names the part that a function belongs to.
func partOf(function string) string {
	if strings.HasPrefix(function, "internal/runtime/syscall") || strings.HasPrefix(function, "syscall.") {
		return "system calls"
	}
	pkg, name, _ := strings.Cut(function[strings.LastIndex(function, "/")+1:], ".")
	pkg = function[:strings.LastIndex(function, "/")+1] + pkg
	switch {
	case pkg != "runtime" && !strings.HasPrefix(pkg, "internal/runtime"):
		return strings.TrimPrefix(pkg, "github.com/yaya-ai/yaya/")
	case memory.MatchString(name):
		return "runtime: memory"
	case strings.HasPrefix(name, "memmove"):
		return "runtime: copies"
	}
	return "runtime: scheduler and the rest"
}
