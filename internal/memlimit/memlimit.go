// Package memlimit bounds the memory of the process unless its environment does: by a limit
// from the memory of the machine, or of its control group, and by how far the heap grows
// before it is collected.
package memlimit

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	// Of what there is, a quarter stays for what the Go runtime does not count: the
	// stacks of C, files that are mapped, and the processes of servers.
	numerator, denominator = 3, 4

	most = 4 << 30 // no more than that for yaya alone, however large the machine

	maxFile = 256 << 10 // bytes of a file of /proc
)

// Set sets the limit unless GOMEMLIMIT says one. It returns the limit that holds, in
// bytes, 0 for none.
func Set() int64 {
	if os.Getenv("GOMEMLIMIT") == "" {
		if limit := Default(os.DirFS("/")); limit > 0 {
			debug.SetMemoryLimit(limit)
		}
	}
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return limit
	}
	return 0
}

// Default returns the limit for a machine with that file system: three quarters of
// the memory of the control group (v2 or v1) or of the machine, whichever is less, and
// at most 4 GiB. It is 0 when neither says how much there is.
func Default(root fs.FS) int64 {
	have := min(machine(root), group(root))
	if have == math.MaxInt64 {
		return 0
	}
	return min(have/denominator*numerator, most)
}

// machine returns the machine's memory, in bytes.
func machine(root fs.FS) int64 {
	for line := range strings.Lines(read(root, "proc/meminfo")) {
		rest, ok := strings.CutPrefix(line, "MemTotal:")
		if !ok {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		if err == nil && kb > 0 && kb < math.MaxInt64>>10 {
			return kb << 10
		}
	}
	return math.MaxInt64
}

// group returns the least memory that this process's control group and those above it
// may have, in bytes (cgroups(7)). A container sees its own group as the top.
func group(root fs.FS) int64 {
	have := int64(math.MaxInt64)
	for line := range strings.Lines(read(root, "proc/self/cgroup")) {
		hierarchy, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		controllers, at, ok2 := strings.Cut(rest, ":")
		if !ok || !ok2 {
			continue
		}
		var dir, file string
		switch {
		case hierarchy == "0" && controllers == "":
			dir, file = "sys/fs/cgroup", "memory.max"
		case isMemory(controllers):
			dir, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for at = path.Clean("/" + at); ; at = path.Dir(at) {
			have = min(have, number(root, path.Join(dir, at, file)))
			if at == "/" {
				break
			}
		}
	}
	return have
}

func isMemory(controllers string) bool {
	for c := range strings.SplitSeq(controllers, ",") {
		if c == "memory" {
			return true
		}
	}
	return false
}

// number reads a limit; a missing file, or one that says "max", means no limit.
func number(root fs.FS, name string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(read(root, name)), 10, 64)
	if err != nil || n <= 0 {
		return math.MaxInt64
	}
	return n
}

// read returns the content of a file of the system, "" if it is unreadable.
func read(root fs.FS, name string) string {
	f, err := root.Open(name)
	if err != nil {
		return ""
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile)) //nolint:forbidigo // bounded by the reader
	if errors.Join(err, f.Close()) != nil {
		return ""
	}
	return string(data)
}
