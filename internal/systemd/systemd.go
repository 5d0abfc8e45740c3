// Package systemd speaks with the service manager that started this process: it tells how the
// service is (sd_notify(3)), keeps the watchdog content, and takes the sockets that the manager
// opened (sd_listen_fds(3)). Without such a manager, its functions do nothing.
//
// The protocol is a datagram with lines NAME=VALUE to the Unix socket of NOTIFY_SOCKET. Other
// managers and containers (podman, s6, runit's wrappers) understand it, too.
package systemd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// States of a service, as it tells them.
const (
	Ready     = "READY=1"
	Reloading = "RELOADING=1"
	Stopping  = "STOPPING=1"
	Alive     = "WATCHDOG=1"
)

// Status is a line for people, which "systemctl status" shows.
func Status(text string) string { return "STATUS=" + strings.ReplaceAll(text, "\n", " ") }

// Reload are the lines for a reload or a restart in place, which [Ready] ends, with a status.
func Reload(status string) []string {
	return []string{Reloading, "MONOTONIC_USEC=" + strconv.FormatInt(monotonic().Microseconds(), 10), Status(status)}
}

// Notifier tells the service manager how this process is. The zero value tells nobody. Its
// methods are safe for concurrent use.
type Notifier struct {
	socket   string
	watchdog time.Duration
}

// New returns the notifier of this process, by the environment that lookup reads. An error
// names a variable that cannot be what a service manager sets.
func New(lookup func(string) string, pid int) (Notifier, error) {
	n := Notifier{socket: lookup("NOTIFY_SOCKET")}
	switch {
	case n.socket == "":
		return n, nil
	case n.socket[0] != '/' && n.socket[0] != '@':
		return Notifier{}, fmt.Errorf("NOTIFY_SOCKET=%s: only Unix sockets are supported, such as /run/systemd/notify", n.socket)
	}
	every, of := lookup("WATCHDOG_USEC"), lookup("WATCHDOG_PID")
	if every == "" || of != "" && of != strconv.Itoa(pid) {
		return n, nil
	}
	usec, err := strconv.ParseInt(every, 10, 64)
	if err != nil || usec <= 0 || usec > int64(24*time.Hour/time.Microsecond) {
		return Notifier{}, fmt.Errorf("WATCHDOG_USEC=%s is not a number of microseconds up to a day", every)
	}
	n.watchdog = time.Duration(usec) * time.Microsecond
	return n, nil
}

// On reports whether a service manager listens.
func (n Notifier) On() bool { return n.socket != "" }

// Watchdog returns how often [Alive] has to be told, 0 for never: half of the time after which
// the manager takes the service for stuck.
func (n Notifier) Watchdog() time.Duration { return n.watchdog / 2 }

// writeTimeout bounds how long a manager that does not read holds up the service.
const writeTimeout = time.Second

// Tell sends a message of these lines.
func (n Notifier) Tell(lines ...string) error {
	if n.socket == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("tell the service manager: %w", err)
	}
	defer func() { _ = c.Close() }()
	err = c.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err == nil {
		_, err = c.Write([]byte(strings.Join(lines, "\n")))
	}
	if err != nil {
		return fmt.Errorf("tell the service manager: %w", err)
	}
	return nil
}

// Socket is a socket that this process was started with.
type Socket struct {
	Name string // FileDescriptorName= of its unit
	File *os.File
}

const (
	firstSocket = 3 // SD_LISTEN_FDS_START
	maxSockets  = 16
)

// Sockets takes the sockets that the service manager has opened for this process: the caller
// owns them. The variables that name them are removed, so that no child takes them for its own.
func Sockets() ([]Socket, error) {
	pid, count, names := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_FDNAMES")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		if err := os.Unsetenv(name); err != nil {
			return nil, err
		}
	}
	if count == "" || pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > maxSockets {
		return nil, fmt.Errorf("LISTEN_FDS=%s: the service manager may pass up to %d sockets", count, maxSockets)
	}
	var named []string
	if names != "" {
		named = strings.Split(names, ":")
	}
	out := make([]Socket, 0, n)
	for i := range n {
		name := ""
		if i < len(named) {
			name = named[i]
		}
		file, err := passedFile(firstSocket+i, "socket "+name)
		if err != nil {
			return nil, err
		}
		out = append(out, Socket{name, file})
	}
	return out, nil
}

// Listener returns the listener of a passed socket, which keeps a descriptor of its own.
func (s Socket) Listener() (net.Listener, error) {
	l, err := net.FileListener(s.File)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSOCK) {
		err = fmt.Errorf("%w (its unit needs ListenStream= and Accept=no)", err)
	}
	if err != nil {
		return nil, fmt.Errorf("passed socket %q cannot be listened on: %w", s.Name, err)
	}
	return l, nil
}

// Close lets go of the socket.
func (s Socket) Close() error { return s.File.Close() }
