package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// tables are buffers for the table of mounts, which is read each time a workspace is opened.
var tables = sync.Pool{New: func() any { return new([]byte) }}

// maxTable bounds the table that is kept in a buffer between two readings, in bytes.
const maxTable = 256 << 10

// mountsBelow returns the paths at which something is mounted in an open folder. It reads the table
// each time: poll(2) tells of a new mount, but not that a folder above one was renamed.
func mountsBelow(folder *os.File) ([]string, error) {
	raw, err := folder.SyscallConn()
	if err != nil {
		return nil, err
	}
	var dir string
	cerr := raw.Control(func(fd uintptr) { dir, err = os.Readlink("/proc/self/fd/" + strconv.Itoa(int(fd))) }) //nolint:gosec // a descriptor fits
	if err = errors.Join(err, cerr); err != nil {
		return nil, err
	}
	buf := tables.Get().(*[]byte) //nolint:forcetypeassert // the pool has nothing else
	defer func() {
		if cap(*buf) <= maxTable {
			tables.Put(buf)
		}
	}()
	if *buf, err = table((*buf)[:0]); err != nil {
		return nil, fmt.Errorf("/proc/self/mountinfo: %w", err)
	}
	prefix := []byte(strings.TrimSuffix(dir, "/") + "/")
	var out []string
	for line := range bytes.Lines(*buf) {
		// 36 35 98:0 /root /mount/point …
		for range 4 {
			_, line, _ = bytes.Cut(line, []byte(" "))
		}
		at, _, _ := bytes.Cut(line, []byte(" "))
		if bytes.IndexByte(at, '\\') >= 0 {
			at = []byte(unescape.Replace(string(at)))
		}
		if bytes.HasPrefix(at, prefix) {
			out = append(out, string(at))
		}
	}
	return out, nil
}

// table appends the table of mounts to a buffer. It avoids os.ReadFile, which registers the file with the
// poller and reads pieces of 512 bytes at first: for each, the system makes the table from its beginning.
func table(buf []byte) ([]byte, error) {
	fd, err := retried(func() (int, error) { return unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, err
	}
	for {
		if cap(buf)-len(buf) < 4096 { // the system gives up to a page at once
			buf = append(buf, make([]byte, 16<<10)...)[:len(buf)]
		}
		n, err := retried(func() (int, error) { return unix.Read(fd, buf[len(buf):cap(buf)]) })
		if n <= 0 || err != nil {
			return buf, errors.Join(err, unix.Close(fd))
		}
		buf = buf[:len(buf)+n]
	}
}

func retried(f func() (int, error)) (n int, err error) {
	for {
		if n, err = f(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
