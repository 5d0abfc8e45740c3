// Package keychain reaches the keychain of the operating system: that of macOS, the
// Credential Manager of Windows, and the Secret Service of Linux desktops.
//
// A keychain may ask its user a question, and so never answer. Calls of its libraries
// cannot be cancelled, so [Client] makes each in a separate process, which runs [Main], and
// kills it after a timeout. Values pass through pipes, not through arguments or the
// environment.
//
// On Linux it uses only a running session bus, and starts none.
package keychain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/zalando/go-keyring"
)

// service is the name of yaya's entries in the keychain.
const service = "yaya"

// Patience is how long a keychain may take to answer: somebody may have to unlock it.
const Patience = 30 * time.Second

// Command is the first argument of the process that runs [Main].
const Command = "__keychain"

const maxValue = 2048 // what every keychain takes

// notFound is the exit code when the keychain has nothing for an account, and failed when
// it does not answer.
const (
	notFound = 3
	failed   = 1
)

// errNone reports that this machine has no keychain.
var errNone = errors.New("there is no keychain: no session bus of a desktop")

// there reports whether a keychain can be asked without starting a service.
func there() bool {
	if runtime.GOOS != "linux" && runtime.GOOS != "freebsd" {
		return true
	}
	if addr := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); addr != "" {
		return addr != "autolaunch:" && !strings.HasPrefix(addr, "disabled:")
	}
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		dir = "/run/user/" + strconv.Itoa(os.Getuid())
	}
	st, err := os.Stat(filepath.Join(dir, "bus")) //nolint:gosec // the user's environment names it
	return err == nil && st.Mode().Type() == fs.ModeSocket
}

// Main performs one call if this process was started for it, and reports whether it was;
// code is the exit code.
func Main(args []string, in io.Reader, out, errs io.Writer) (code int, mine bool) {
	if len(args) != 3 || args[0] != Command {
		return 0, false
	}
	err := one(args[1], args[2], in, out)
	switch {
	case errors.Is(err, keyring.ErrNotFound):
		return notFound, true
	case err != nil:
		fmt.Fprintln(errs, err)
		return failed, true
	}
	return 0, true
}

func one(what, account string, in io.Reader, out io.Writer) error {
	if !there() {
		return errNone
	}
	switch what {
	case "get":
		v, err := keyring.Get(service, account)
		if err != nil {
			return err
		}
		_, err = io.WriteString(out, v)
		return err
	case "set":
		raw, err := io.ReadAll(io.LimitReader(in, maxValue+1)) //nolint:forbidigo // bounded by the reader
		if err != nil {
			return err
		}
		if len(raw) > maxValue {
			return fmt.Errorf("a keychain takes %d bytes at most", maxValue)
		}
		return keyring.Set(service, account, string(raw))
	case "delete":
		return keyring.Delete(service, account)
	}
	return fmt.Errorf("there is no call %q", what)
}

// Client reaches the keychain. It is safe for concurrent use.
type Client struct {
	// Program is the path of a program that calls [Main] first.
	Program string
	// Patience is how long one call may take; 0 is [Patience].
	Patience time.Duration
}

// Get returns the value of an account; if there is none, the error wraps
// [fs.ErrNotExist].
func (c Client) Get(ctx context.Context, account string) (string, error) {
	return c.call(ctx, "get", account, "")
}

// Set stores the value of an account, and replaces an earlier one.
func (c Client) Set(ctx context.Context, account, value string) error {
	_, err := c.call(ctx, "set", account, value)
	return err
}

// Delete deletes the value of an account.
func (c Client) Delete(ctx context.Context, account string) error {
	_, err := c.call(ctx, "delete", account, "")
	return err
}

func (c Client) call(asked context.Context, what, account, value string) (string, error) {
	if !there() {
		return "", errNone
	}
	patience := c.Patience
	if patience == 0 {
		patience = Patience
	}
	ctx, cancel := context.WithTimeout(asked, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Program, Command, what, account) //nolint:gosec // yaya itself
	cmd.Stdin = strings.NewReader(value)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &limited{&out, 2 * maxValue}, &limited{&errs, 1 << 10}
	cmd.WaitDelay = time.Second // something that it has started may hold the pipes
	err := cmd.Run()
	if asked.Err() != nil {
		return "", fmt.Errorf("the keychain was asked, and had not answered: %w", asked.Err())
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("the keychain did not answer within %v", patience)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == notFound {
		return "", fmt.Errorf("the keychain has nothing of that name: %w", fs.ErrNotExist)
	}
	if err != nil {
		return "", fmt.Errorf("the keychain: %w: %s", err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// limited keeps the beginning of the written data.
type limited struct {
	b    *bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	l.b.Write(p[:n])
	return len(p), nil
}
