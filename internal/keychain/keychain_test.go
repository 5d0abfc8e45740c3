package keychain

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zalando/go-keyring"
)

// TestMain makes this program the process of a call, with a keychain in memory that has
// one entry.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		keyring.MockInit()
		if os.Getenv("KEYCHAIN_TEST") == "hangs" {
			time.Sleep(time.Hour)
		}
		if os.Getenv("KEYCHAIN_TEST") == "broken" {
			keyring.MockInitWithError(errors.New("locked"))
		} else if err := keyring.Set(service, "known", "value"); err != nil {
			panic(err)
		}
		code, mine := Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
		if !mine {
			code = 99
		}
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func client(t *testing.T, behaves string) Client {
	t.Helper()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
	t.Setenv("KEYCHAIN_TEST", behaves)
	return Client{Program: os.Args[0]}
}

func TestCalls(t *testing.T) {
	c := client(t, "works")
	if v, err := c.Get(t.Context(), "known"); err != nil || v != "value" {
		t.Errorf("Get(known) = %q, %v, want value", v, err)
	}
	if _, err := c.Get(t.Context(), "unknown"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Get(unknown) = %v, want %v", err, fs.ErrNotExist)
	}
	if err := c.Set(t.Context(), "a", "b"); err != nil {
		t.Errorf("Set = %v", err)
	}
	if err := c.Delete(t.Context(), "unknown"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Delete(unknown) = %v, want %v", err, fs.ErrNotExist)
	}
	if err := c.Set(t.Context(), "a", strings.Repeat("x", maxValue+1)); err == nil {
		t.Error("Set of too much succeeded")
	}
}

func TestBrokenKeychain(t *testing.T) {
	if _, err := client(t, "broken").Get(t.Context(), "known"); err == nil || !strings.Contains(err.Error(), "locked") || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Get = %v, want that it is locked", err)
	}
}

// A keychain that waits for somebody does not hold yaya up, and nothing is left of the call.
func TestHangingKeychain(t *testing.T) {
	c := client(t, "hangs")
	c.Patience = 200 * time.Millisecond
	if _, err := c.Get(t.Context(), "known"); err == nil || !strings.Contains(err.Error(), "did not answer") {
		t.Errorf("Get = %v, want that it did not answer", err)
	}
}

// Without a session bus nobody is asked, and above all none is started.
func TestNoBusIsStarted(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the keychain of this system needs no bus")
	}
	dir := t.TempDir()
	mark := filepath.Join(dir, "launched")
	if err := os.WriteFile(filepath.Join(dir, "dbus-launch"), []byte("#!/bin/sh\ntouch "+mark+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("XDG_RUNTIME_DIR", dir)
	for _, addr := range []string{"", "autolaunch:"} {
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", addr)
		var errs bytes.Buffer
		if code, mine := Main([]string{Command, "get", "known"}, strings.NewReader(""), &errs, &errs); !mine || code != failed {
			t.Errorf("with the bus %q: Main = %d, %v, want %d", addr, code, mine, failed)
		}
		if _, err := (Client{Program: "/nonexistent"}).Get(t.Context(), "known"); !errors.Is(err, errNone) {
			t.Errorf("with the bus %q: Get = %v, want %v", addr, err, errNone)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a bus was started")
	}
	if _, err := exec.LookPath("dbus-launch"); err != nil {
		t.Errorf("the fake dbus-launch is not found: %v", err)
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", filepath.Join(dir, "bus"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	if !there() {
		t.Error("a bus that is there is not seen")
	}
}

func TestOtherArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"serve"}, {Command}, {Command, "get"}, {Command, "get", "a", "b"}} {
		if code, mine := Main(args, strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}); mine || code != 0 {
			t.Errorf("Main(%q) = %d, %v, want that it is not its", args, code, mine)
		}
	}
}
