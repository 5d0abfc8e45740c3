package workspace

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// mountsBelow returns the paths at which something is mounted in an open folder.
func mountsBelow(folder *os.File) []string {
	raw, err := folder.SyscallConn()
	if err != nil {
		return nil
	}
	var dir string
	err = raw.Control(func(fd uintptr) { dir, _ = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)) })
	if err != nil || dir == "" {
		return nil
	}
	prefix := strings.TrimSuffix(dir, "/") + "/"
	var out []string
	for _, at := range table.points() {
		if strings.HasPrefix(at, prefix) {
			out = append(out, at)
		}
	}
	return out
}

// table is the mount table of this process. Reading it for each workspace that is opened would be
// most of that work, so it is read when the system reports a change, and when it is old.
var table mountTable

// lasts is how long a table is used: the system reports what is mounted and unmounted, but not the
// rename of a folder that contains mounts.
const lasts = time.Second

// mountTable is a mount table (proc_pid_mountinfo(5)), safe for concurrent use.
type mountTable struct {
	mu   sync.Mutex
	file *os.File  // open as long as the process runs; nil until it is needed
	all  []string  // the mount points
	read time.Time // when they were read
}

// points returns everything at which something is mounted now, nothing if the system does not tell.
// The caller does not change it.
func (m *mountTable) points() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var err error
	if m.file == nil {
		// The poller of the runtime would take the news of a change before poll does.
		var fd int
		fd, err = unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil
		}
		m.file = os.NewFile(uintptr(fd), "/proc/self/mountinfo")
	}
	if age := time.Since(m.read); m.moved() || age < 0 || age > lasts {
		m.read = time.Now()
		if m.all, err = read(m.file); err != nil {
			m.read = time.Time{} // and again the next time
		}
	}
	return m.all
}

// moved reports whether the table may have changed since it was asked last.
func (m *mountTable) moved() bool {
	ask := []unix.PollFd{{Fd: int32(m.file.Fd()), Events: unix.POLLPRI}} //nolint:gosec // a descriptor fits
	n, err := unix.Poll(ask, 0)
	return err != nil || n != 0
}

func read(table *os.File) ([]string, error) {
	if _, err := table.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(table) //nolint:forbidigo // a file of /proc
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range bytes.Lines(text) {
		// 36 35 98:0 /root /mount/point …
		for range 4 {
			_, line, _ = bytes.Cut(line, []byte(" "))
		}
		point, _, _ := bytes.Cut(line, []byte(" "))
		out = append(out, unescape.Replace(string(point)))
	}
	return out, nil
}

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
