package memlimit

import (
	"math"
	"runtime/debug"
	"testing"
	"testing/fstest"
)

func TestDefault(t *testing.T) {
	const (
		meminfo = "MemTotal:       16384000 kB\nMemFree:        1000 kB\n"
		small   = "MemTotal:        2097152 kB\n"
		v2      = "0::/user.slice/yaya.service\n"
		v1      = "11:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/system.slice\n"
	)
	for name, tt := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"nothing is known":         {nil, 0},
		"a large machine":          {map[string]string{"proc/meminfo": meminfo}, 4 << 30},
		"a small machine":          {map[string]string{"proc/meminfo": small}, 2 << 30 / 4 * 3},
		"a tiny group":             {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1048576\n"}, 768 << 10},
		"a group of 64 MiB":        {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "67108864\n"}, 48 << 20},
		"a group":                  {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": v2, "sys/fs/cgroup/user.slice/yaya.service/memory.max": "536870912\n"}, 384 << 20},
		"the group above":          {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": v2, "sys/fs/cgroup/user.slice/yaya.service/memory.max": "max\n", "sys/fs/cgroup/user.slice/memory.max": "1073741824\n"}, 768 << 20},
		"a container's top":        {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n"}, 768 << 20},
		"a group without one":      {map[string]string{"proc/meminfo": small, "proc/self/cgroup": v2, "sys/fs/cgroup/user.slice/yaya.service/memory.max": "max\n"}, 2 << 30 / 4 * 3},
		"more than there is":       {map[string]string{"proc/meminfo": small, "proc/self/cgroup": v2, "sys/fs/cgroup/user.slice/yaya.service/memory.max": "99999999999\n"}, 2 << 30 / 4 * 3},
		"version 1":                {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": v1, "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "536870912\n"}, 384 << 20},
		"version 1 in a container": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": v1, "sys/fs/cgroup/memory/memory.limit_in_bytes": "536870912\n"}, 384 << 20},
		"version 1 without one":    {map[string]string{"proc/meminfo": small, "proc/self/cgroup": v1, "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 2 << 30 / 4 * 3},
		"nonsense":                 {map[string]string{"proc/meminfo": "MemTotal: many kB\nMemTotal", "proc/self/cgroup": "0::../..\nx\n::\n", "sys/fs/cgroup/memory.max": "-5"}, 0},
	} {
		root := fstest.MapFS{}
		for file, text := range tt.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := Default(root); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
}

func TestSet(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	t.Setenv("GOMEMLIMIT", "off")
	if got := Set(); got != 0 {
		t.Errorf("with GOMEMLIMIT=off: got %d, want 0", got)
	}
	t.Setenv("GOMEMLIMIT", "")
	if got := Set(); got < 0 || got > most || (got != 0 && debug.SetMemoryLimit(-1) != got) {
		t.Errorf("without GOMEMLIMIT: got %d, want at most %d, and that it holds", got, most)
	}
}
