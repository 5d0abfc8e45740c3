package workspace

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// mountsBelow returns the paths at which something is mounted in an open folder. It reads the table
// each time: poll(2) tells of a new mount, but not that a folder above one was renamed.
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
	all, err := os.ReadFile("/proc/self/mountinfo") //nolint:forbidigo // a file of /proc
	if err != nil {
		return nil
	}
	prefix := strings.TrimSuffix(dir, "/") + "/"
	var out []string
	for line := range bytes.Lines(all) {
		// 36 35 98:0 /root /mount/point …
		for range 4 {
			_, line, _ = bytes.Cut(line, []byte(" "))
		}
		point, _, _ := bytes.Cut(line, []byte(" "))
		at := string(point)
		if strings.Contains(at, `\`) {
			at = unescape.Replace(at)
		}
		if strings.HasPrefix(at, prefix) {
			out = append(out, at)
		}
	}
	return out
}

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
