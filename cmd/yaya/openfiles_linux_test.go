package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// REL-11, OP-54: without descriptors yaya cannot find out who is at the other end of a connection. It
// says so with 503, and not that a token is needed; with descriptors again, the same connection
// works. A limit that is low is said in the log and by doctor.
func TestRunningOutOfDescriptors(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	p := b.daemon("serve", "--listen", b.addr)
	eventually.True(t, "yaya is ready", func() bool {
		resp, err := http.Get("http://" + b.addr + "/health?ready=1") //nolint:noctx // test
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	c, err := net.Dial("tcp", b.addr) //nolint:noctx // test
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := bufio.NewReader(c)
	ask := func(path string) (int, string, http.Header) {
		t.Helper()
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, b.addr)
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("GET %s: %v", path, err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body), resp.Header
	}
	// It is public: nobody has asked yet who is there.
	if got, body, _ := ask("/health"); got != http.StatusOK {
		t.Fatalf("health: got %d %s, want 200", got, body)
	}
	var was unix.Rlimit
	none := unix.Rlimit{}
	if err := unix.Prlimit(p.Process.Pid, unix.RLIMIT_NOFILE, nil, &was); err != nil {
		t.Fatal(err)
	}
	none.Max = was.Max
	if err := unix.Prlimit(p.Process.Pid, unix.RLIMIT_NOFILE, &none, nil); err != nil {
		t.Fatal(err)
	}
	got, body, header := ask("/status")
	if got != http.StatusServiceUnavailable || !strings.Contains(body, "no file descriptors left") || header.Get("Retry-After") == "" {
		t.Errorf("without descriptors: got %d %s, want 503 that says so and when to retry", got, body)
	}
	if err := unix.Prlimit(p.Process.Pid, unix.RLIMIT_NOFILE, &was, nil); err != nil {
		t.Fatal(err)
	}
	if got, body, _ := ask("/status"); got != http.StatusOK {
		t.Errorf("with descriptors again: got %d %s, want 200 for the owner", got, body)
	}
}

// REL-11, OP-54: a limit that is low is said at the start and by doctor, with the remedy; yaya works
// within it.
func TestLowLimitOfDescriptorsIsSaid(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	wrapped := b.bin
	b.bin = filepath.Join(b.dir, "low.sh")
	script := fmt.Sprintf("#!/bin/sh\nulimit -n 512\nexec %q \"$@\"\n", wrapped)
	writeProgram(t, b.bin, script)
	p := b.daemon("serve", "--listen", b.addr)
	const want = "yaya may have 512 files open"
	eventually.True(t, "the log says that the limit is low", func() bool {
		return strings.Contains(p.said.String(), want) && strings.Contains(p.said.String(), "ulimit -n 4096")
	})
	eventually.True(t, "doctor answers", func() bool {
		out, err := b.run("doctor")
		return err == nil && strings.Contains(out, want)
	})
}
