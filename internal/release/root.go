//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// root is the folder of a system with a shell and nothing else.
type root struct {
	dir string
	at  *os.Root
}

func openRoot(ctx context.Context, busybox string) (r *root, err error) {
	dir, err := os.MkdirTemp("", "yaya-root-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // users of the root pass through it
		return nil, err
	}
	r = &root{dir: dir}
	if r.at, err = os.OpenRoot(dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.remove())
		}
	}()
	for _, d := range []string{"bin", "dev", "etc", "proc", "tmp", "usr/bin", "usr/sbin", "var/lib", "root"} {
		if err := r.at.MkdirAll(d, 0o755); err != nil {
			return r, err
		}
	}
	if err := r.at.Chmod("tmp", 0o777|os.ModeSticky); err != nil {
		return r, err
	}
	program, err := os.ReadFile(busybox) //nolint:forbidigo,gosec // of this machine
	if err != nil {
		return r, err
	}
	for name, text := range map[string]string{"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "etc/group": "root:x:0:\n", "etc/shells": "/bin/sh\n", "etc/shadow": "root:*:1::::::\n"} { //nolint:gosec // nobody's password
		if err := r.at.WriteFile(name, []byte(text), 0o644); err != nil {
			return r, err
		}
	}
	if err := r.at.WriteFile("bin/busybox", program, 0o755); err != nil {
		return r, err
	}
	if err := syscall.Mknod(filepath.Join(dir, "dev/null"), syscall.S_IFCHR|0o666, 1<<8|3); err != nil {
		return r, fmt.Errorf("make /dev/null in %s: %w", dir, err)
	}
	if err = r.run(ctx, "/bin/busybox", "--install", "-s", "/bin"); err != nil {
		return r, err
	}
	for _, name := range []string{"groupadd", "useradd"} { // this busybox makes no users
		if err := r.copyProgram(ctx, name); err != nil {
			return r, err
		}
	}
	return r, nil
}

// copyProgram copies a program of this machine with its libraries.
func (r *root) copyProgram(ctx context.Context, name string) error {
	path, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("roots need %s: install passwd (shadow)", name)
	}
	libraries, err := output(ctx, "/", "ldd", path)
	if err != nil {
		return err
	}
	files := []string{path}
	for word := range strings.FieldsSeq(libraries) {
		if strings.HasPrefix(word, "/") {
			files = append(files, word)
		}
	}
	for _, file := range files {
		data, err := os.ReadFile(file) //nolint:forbidigo,gosec // of this machine
		if err != nil {
			return err
		}
		if err := r.at.MkdirAll(filepath.Dir(file[1:]), 0o755); err != nil {
			return err
		}
		if err := r.at.WriteFile(file[1:], data, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func (r *root) remove() error {
	return errors.Join(r.at.Close(), os.RemoveAll(r.dir)) //nolint:forbidigo // made by openRoot
}

// command is a program in the root.
func (r *root) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // a root is made for running what a package brings
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/sbin:/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: r.dir}
	return cmd
}

func (r *root) run(ctx context.Context, name string, args ...string) error {
	out, err := r.command(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

func (r *root) has(name string) bool {
	_, err := r.at.Lstat(name)
	return err == nil
}

func (r *root) read(name string) (data []byte, found bool) {
	data, err := r.at.ReadFile(name)
	return data, err == nil
}

func (r *root) contains(name, text string) bool {
	data, _ := r.read(name)
	return bytes.Contains(data, []byte(text))
}

func (r *root) appendTo(name, text string) error {
	data, err := r.at.ReadFile(name)
	if err != nil {
		return err
	}
	return r.at.WriteFile(name, append(data, text...), 0o600)
}

// user is a user with its group, by their numbers.
type user struct{ uid, gid string }

// owner is the user that the package has made.
func (r *root) owner() (user, error) {
	users, _ := r.read("etc/passwd")
	for line := range strings.Lines(string(users)) {
		if f := strings.Split(line, ":"); f[0] == "yaya" && len(f) > 3 {
			return user{f[2], f[3]}, nil
		}
	}
	return user{}, errors.New("the package has made no user yaya")
}

// serve starts the program as the service does, with a free port, asks for /health, and stops it.
func (r *root) serve(ctx context.Context, hasUnit bool) (err error) {
	as, err := r.owner()
	if err != nil {
		return err
	}
	argv, err := execStart(unit())
	if err != nil {
		return err
	}
	if hasUnit {
		installed, _ := r.read("usr/lib/systemd/system/yaya.service")
		if argv, err = execStart(installed); err != nil {
			return err
		}
	}
	// The folders that StateDirectory= names, as systemd makes them.
	for _, dir := range []string{"/var/lib/yaya/data", "/var/lib/yaya/config"} {
		if err := r.run(ctx, "/bin/mkdir", "-p", "-m", "700", dir); err != nil {
			return err
		}
		if err := r.run(ctx, "/bin/chown", as.uid+":"+as.gid, dir); err != nil {
			return err
		}
	}
	addr, err := freeAddr(ctx)
	if err != nil {
		return err
	}
	// yaya needs /proc. The mount namespace of unshare ends with the program.
	args := append([]string{"--mount-proc", "--root=" + r.dir, "--wd=/var/lib/yaya", "--setgid=" + as.gid, "--setuid=" + as.uid}, argv...)
	cmd := exec.CommandContext(ctx, "unshare", append(args, "--listen", addr)...) //nolint:gosec // a root is made for running what a package brings
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/bin", "HOME=/var/lib/yaya"}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGTERM) }, time.Minute
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	health, left := healthy(ctx, "http://"+addr+"/health", ended)
	if left != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), left, said.Bytes())
	}
	stop := cmd.Process.Signal(syscall.SIGTERM)
	if err := errors.Join(health, stop, <-ended); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, said.Bytes())
	}
	return nil
}

// healthy waits for 200 from an address. left is the reason why the program has ended before.
func healthy(ctx context.Context, url string, ended <-chan error) (health, left error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	client := &http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err, nil
		}
		resp, err := client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil, nil
			}
			err = fmt.Errorf("%s answers %s", url, resp.Status)
		}
		select {
		case exit := <-ended:
			return nil, fmt.Errorf("it ended before it answered: %w", errors.Join(exit, err))
		case <-ctx.Done():
			return err, nil
		case <-every.C:
		}
	}
}

// execStart is the command of a unit. The packages' units quote nothing.
func execStart(unit []byte) ([]string, error) {
	for line := range strings.Lines(string(unit)) {
		if command, ok := strings.CutPrefix(line, "ExecStart="); ok {
			return strings.Fields(command), nil
		}
	}
	return nil, errors.New("the unit has no ExecStart")
}

func freeAddr(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
