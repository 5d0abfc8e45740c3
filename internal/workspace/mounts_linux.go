package workspace

import (
	"bufio"
	"fmt"
	"os"
	"strings"
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
	f, err := os.Open("/proc/self/mountinfo") //nolint:forbidigo // a file of /proc
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	prefix := strings.TrimSuffix(dir, "/") + "/"
	var out []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// 36 35 98:0 /root /mount/point …
		words := strings.SplitN(lines.Text(), " ", 6)
		if len(words) < 6 {
			continue
		}
		if at := unescape.Replace(words[4]); strings.HasPrefix(at, prefix) {
			out = append(out, at)
		}
	}
	return out
}

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
