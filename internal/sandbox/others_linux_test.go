package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// escapesToOthers are escapes that change other processes of the user, yaya's among them.
var escapesToOthers = []escape{
	// HIGH 5: what the kernel lets every process of a user change of its others.
	{"lower a limit of another process, guarded", "guarded", func(p *place) string { return fmt.Sprintf("limit %d", p.other.Process.Pid) }, NeedProcesses},
	{"lower a limit of another process", "server", func(p *place) string { return fmt.Sprintf("limit %d", p.other.Process.Pid) }, NeedProcesses},
	{"lower a limit of the sandbox's own process, guarded", "guarded", func(*place) string { return "limitkeeper" }, NeedTree},
	{"priority of another process, guarded", "guarded", func(p *place) string { return fmt.Sprintf("nice 0 %d", p.other.Process.Pid) }, NeedProcesses},
	{"priority of another process", "server", func(p *place) string { return fmt.Sprintf("nice 0 %d", p.other.Process.Pid) }, NeedProcesses},
	{"priority of a group, guarded", "guarded", func(p *place) string { return fmt.Sprintf("nice 1 %d", p.other.Process.Pid) }, NeedProcesses},
	{"processors of another process, guarded", "guarded", func(p *place) string { return fmt.Sprintf("affinity %d", p.other.Process.Pid) }, NeedProcesses},
	{"processors of another process", "server", func(p *place) string { return fmt.Sprintf("affinity %d", p.other.Process.Pid) }, NeedProcesses},
	{"scheduler of another process, guarded", "guarded", func(p *place) string { return fmt.Sprintf("scheduler %d", p.other.Process.Pid) }, NeedProcesses},
	{"parameters of the scheduler of another process, guarded", "guarded", func(p *place) string { return fmt.Sprintf("schedparam %d", p.other.Process.Pid) }, NeedProcesses},
	{"attributes of the scheduler of another process, guarded", "guarded", func(p *place) string { return fmt.Sprintf("schedattr %d", p.other.Process.Pid) }, NeedProcesses},
	{"input and output of another process, guarded", "guarded", func(p *place) string { return fmt.Sprintf("ioprio %d", p.other.Process.Pid) }, NeedProcesses},
	{"input and output of another process", "server", func(p *place) string { return fmt.Sprintf("ioprio %d", p.other.Process.Pid) }, NeedProcesses},
	{"advise on the memory of another process, guarded", "guarded", func(p *place) string { return fmt.Sprintf("madvise %d", p.other.Process.Pid) }, NeedProcesses},
	{"release the memory of another process, guarded", "guarded", func(p *place) string { return fmt.Sprintf("mrelease %d", p.other.Process.Pid) }, NeedProcesses},
	{"write the memory of another process, guarded", "guarded", func(p *place) string { return fmt.Sprintf("vmwrite %d", p.other.Process.Pid) }, NeedProcesses},
	{"move the memory of another process, guarded", "guarded", func(p *place) string { return fmt.Sprintf("movepages %d", p.other.Process.Pid) }, NeedProcesses},
	{"migrate the memory of another process, guarded", "guarded", func(p *place) string { return fmt.Sprintf("migratepages %d", p.other.Process.Pid) }, NeedProcesses},
	{"take a descriptor of another process, guarded", "guarded", func(p *place) string { return fmt.Sprintf("getfd %d", p.other.Process.Pid) }, NeedProcesses},
	{"signal by a descriptor of a process, guarded", "guarded", func(p *place) string { return fmt.Sprintf("signalfd %d", p.other.Process.Pid) }, NeedProcesses},
	{"compare with another process, guarded", "guarded", func(p *place) string { return fmt.Sprintf("kcmp %d", p.other.Process.Pid) }, NeedProcesses},
	{"count what another process does, guarded", "guarded", func(p *place) string { return fmt.Sprintf("perf %d", p.other.Process.Pid) }, NeedProcesses},
	{"have the kernel end yaya first, guarded", "guarded", func(*place) string { return yayas("oom_score_adj") }, NeedProcesses},
	{"priority of yaya's session, guarded", "guarded", func(*place) string { return yayas("autogroup") }, NeedProcesses},
	{"timers of yaya, guarded", "guarded", func(*place) string { return yayas("timerslack_ns") }, NeedProcesses},
	{"core files of yaya, guarded", "guarded", func(*place) string { return yayas("coredump_filter") }, NeedProcesses},
	{"pages of yaya, guarded", "guarded", func(*place) string { return yayas("clear_refs") }, NeedProcesses},
	{"name of yaya, guarded", "guarded", func(*place) string { return yayas("comm") }, NeedProcesses},
	{"memory of yaya, guarded", "guarded", func(*place) string { return yayas("mem") }, NeedProcesses},
	{"have the kernel end yaya first by a thread, guarded", "guarded", func(*place) string { return yayas(fmt.Sprintf("task/%d/oom_score_adj", os.Getpid())) }, NeedProcesses},
	// Of the yaya that serves, where another one runs the sandbox.
	{"have the kernel end the yaya that serves first, guarded", "guarded", func(p *place) string { return fmt.Sprintf("openw /proc/%d/oom_score_adj", p.other.Process.Pid) }, NeedProcesses},
	{"priority of the session of the yaya that serves, guarded", "guarded", func(p *place) string { return fmt.Sprintf("openw /proc/%d/autogroup", p.other.Process.Pid) }, NeedProcesses},
	{"core files of the yaya that serves, guarded", "guarded", func(p *place) string { return fmt.Sprintf("openw /proc/%d/coredump_filter", p.other.Process.Pid) }, NeedProcesses},
	{"pages of the yaya that serves, guarded", "guarded", func(p *place) string { return fmt.Sprintf("openw /proc/%d/clear_refs", p.other.Process.Pid) }, NeedProcesses},
	{"open a control group, guarded", "guarded", func(*place) string { return "openw " + controlGroup() }, NeedProcesses},
}

// yayas is the attempt to open a file about yaya, which is this process.
func yayas(name string) string { return fmt.Sprintf("openw /proc/%d/%s", os.Getpid(), name) }

// controlGroup is the file that puts processes into the control group of this one.
func controlGroup() string {
	data, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 && parts[1] == "" {
			for _, top := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
				if name := filepath.Join(top, parts[2], "cgroup.procs"); exists(name) {
					return name
				}
			}
		}
	}
	return "/sys/fs/cgroup/cgroup.procs"
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// A program changes limits, priorities and processors of itself, its threads and its
// children by their ids, as without a sandbox.
func TestOwnProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		for _, profile := range []string{"guarded", "check"} {
			for _, attempt := range []string{"limit", "nice 0", "affinity", "scheduler", "schedparam", "schedattr", "ioprio"} {
				for _, whose := range []string{"self", "child", "thread", "grandchild"} {
					t.Run(strings.Join([]string{backend, profile, attempt, whose}, "/"), func(t *testing.T) {
						b, p := needs(t, backend), newPlace(t)
						got, err := b.start(t, p.policy(t, profile), p.ws, []string{attemptEnv + "=" + whose + " " + attempt}, testBinary(t))
						if err != nil || got.code != didIt {
							t.Errorf("code %d, output %q, error %v; want %d", got.code, got.out, err, didIt)
						}
					})
				}
			}
		}
	}
}

// In a sandbox of a sandbox, whose filter somebody answers for already, calls about other
// processes are refused, those about itself are not.
func TestNestedFilter(t *testing.T) {
	b, p := needs(t, Namespaces), newPlace(t)
	for attempt, want := range map[string]int{"limit 0": didIt, fmt.Sprintf("limit %d", p.other.Process.Pid): prevented} {
		got, err := b.start(t, p.policy(t, "guarded"), p.ws, []string{attemptEnv + "=nested " + attempt}, testBinary(t))
		if err != nil || got.code != want {
			t.Errorf("%s: code %d, output %q, error %v; want %d", attempt, got.code, got.out, err, want)
		}
	}
}

// Where no filter is answered, the keeper of a sandbox in a sandbox changes modes. Where
// one is, the change is refused, and the report says it.
func TestNestedChanges(t *testing.T) {
	for _, c := range []struct {
		profile, attempt string
		want             int
	}{
		{"check", "nested limit 0", didIt}, {"check", "nested chmod FILE", didIt}, {"check", "breaks", didIt},
		{"guarded", "nested chmod FILE", prevented}, {"guarded", "breaks", prevented},
	} {
		t.Run(c.profile+"/"+c.attempt, func(t *testing.T) {
			b, p := needs(t, Namespaces), newPlace(t)
			attempt := strings.ReplaceAll(c.attempt, "FILE", p.ws+"/s-program")
			got, err := b.start(t, p.policy(t, c.profile), p.ws, []string{attemptEnv + "=" + attempt}, testBinary(t))
			if err != nil || got.code != c.want {
				t.Errorf("%s: code %d, output %q, error %v; want %d", attempt, got.code, got.out, err, c.want)
			}
		})
	}
}

func init() {
	maps.Copy(attempts, attemptsOnOthers)
	attempts["self"] = func(what string) error { return attemptOn(what, os.Getpid()) }
	attempts["child"] = func(what string) error {
		cmd := exec.Command("sleep", "300")
		if err := cmd.Start(); err != nil {
			return err
		}
		defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
		return attemptOn(what, cmd.Process.Pid)
	}
	attempts["grandchild"] = func(what string) error { // an orphan
		cmd := exec.Command("sh", "-c", "sleep 300 >/dev/null 2>&1 & echo $!")
		out, err := cmd.Output()
		if err != nil {
			return err
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
		if err != nil {
			return err
		}
		defer func() { _ = unix.Kill(pid, unix.SIGKILL) }()
		return attemptOn(what, pid)
	}
	attempts["thread"] = func(what string) error {
		tids, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		tid, err := strconv.Atoi(tids[len(tids)-1].Name())
		if err != nil || len(tids) < 2 {
			return fmt.Errorf("%d threads, %w", len(tids), err)
		}
		return attemptOn(what, tid)
	}
	// breaks fails if a sandbox says that it changes no modes.
	attempts["breaks"] = func(string) error {
		p, err := Profile("guarded")
		if err != nil {
			return err
		}
		run, err := (&Box{Backend: Landlock}).Enter(p)
		if err != nil {
			return err
		}
		defer run.Ended()
		for _, said := range run.Enforced.Breaks {
			if strings.HasPrefix(said, "modes, owners and times") {
				return errors.New(said)
			}
		}
		return nil
	}
	// nested tries the rest in a sandbox of its own.
	attempts["nested"] = func(what string) error {
		p, err := Profile("guarded")
		if err != nil {
			return err
		}
		run, err := (&Box{Backend: Landlock}).Enter(p)
		if err != nil {
			return err
		}
		defer run.Ended()
		cmd := exec.Command(os.Args[0])
		cmd.Env, cmd.Stdout = append(os.Environ(), attemptEnv+"="+what), os.Stdout
		if err := errors.Join(run.Wrap(cmd), cmd.Start()); err != nil {
			return err
		}
		return errors.Join(run.Started(cmd.Process.Pid), cmd.Wait())
	}
}

// attemptOn tries something with a process.
func attemptOn(what string, pid int) error {
	name, arg, _ := strings.Cut(what, " ")
	return attempts[name](strings.TrimSpace(arg + " " + strconv.Itoa(pid)))
}

func pidfd(pid string) (int, error) {
	n, _ := strconv.Atoi(pid)
	return unix.PidfdOpen(n, 0)
}

// attemptsOnOthers are actions that a program must not do to other processes.
var attemptsOnOthers = map[string]func(arg string) error{
	"limit": func(pid string) error {
		n, _ := strconv.Atoi(pid)
		var now unix.Rlimit
		if err := unix.Prlimit(n, unix.RLIMIT_NOFILE, nil, &now); err != nil {
			return err
		}
		now.Cur-- // another process of its user, and itself, is what a person lowers
		return unix.Prlimit(n, unix.RLIMIT_NOFILE, &now, nil)
	},
	"limitkeeper": func(string) error {
		return unix.Prlimit(os.Getppid(), unix.RLIMIT_CPU, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}, nil)
	},
	"nice": func(arg string) error {
		which, who, _ := strings.Cut(arg, " ")
		kind, _ := strconv.Atoi(which)
		n, _ := strconv.Atoi(who)
		return unix.Setpriority(kind, n, 19) // never a raise, whatever it was
	},
	"affinity": func(pid string) error {
		n, _ := strconv.Atoi(pid)
		var set unix.CPUSet
		set.Set(0)
		return unix.SchedSetaffinity(n, &set)
	},
	"scheduler": func(pid string) error {
		n, _ := strconv.Atoi(pid)
		var param int32
		return sys(unix.SYS_SCHED_SETSCHEDULER, uintptr(n), unix.SCHED_BATCH, uintptr(unsafe.Pointer(&param)))
	},
	"schedparam": func(pid string) error {
		n, _ := strconv.Atoi(pid)
		var param int32
		return sys(unix.SYS_SCHED_SETPARAM, uintptr(n), uintptr(unsafe.Pointer(&param)))
	},
	"schedattr": func(pid string) error {
		n, _ := strconv.Atoi(pid)
		return unix.SchedSetAttr(n, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Nice: 19}, 0)
	},
	"ioprio": func(pid string) error {
		n, _ := strconv.Atoi(pid)
		return sys(unix.SYS_IOPRIO_SET, 1, uintptr(n), 3<<13) // idle
	},
	"madvise": func(pid string) error {
		fd, err := pidfd(pid)
		if err != nil {
			return err
		}
		page := unix.Iovec{}
		page.SetLen(0)
		return sys(unix.SYS_PROCESS_MADVISE, uintptr(fd), uintptr(unsafe.Pointer(&page)), 1, unix.MADV_COLD)
	},
	"mrelease": func(pid string) error { // of one that is about to end: else the kernel refuses
		fd, err := pidfd(pid)
		if err != nil {
			return err
		}
		if err := sys(unix.SYS_PROCESS_MRELEASE, uintptr(fd)); err != unix.EINVAL { //nolint:errorlint // an errno
			return err
		}
		return nil
	},
	"getfd": func(pid string) error {
		fd, err := pidfd(pid)
		if err != nil {
			return err
		}
		_, err = unix.PidfdGetfd(fd, 0, 0)
		return err
	},
	"signalfd": func(pid string) error {
		fd, err := pidfd(pid)
		if err != nil {
			return err
		}
		return unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0)
	},
	"kcmp": func(pid string) error {
		n, _ := strconv.Atoi(pid)
		return sys(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(n), 1)
	},
	"movepages": func(pid string) error {
		n, _ := strconv.Atoi(pid)
		return sys(unix.SYS_MOVE_PAGES, uintptr(n), 0, 0, 0, 0, 0)
	},
	"migratepages": func(pid string) error {
		n, _ := strconv.Atoi(pid)
		nodes := uint64(1)
		return sys(unix.SYS_MIGRATE_PAGES, uintptr(n), 64, uintptr(unsafe.Pointer(&nodes)), uintptr(unsafe.Pointer(&nodes)))
	},
	"perf": func(pid string) error {
		n, _ := strconv.Atoi(pid)
		fd, err := unix.PerfEventOpen(&unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Size: unix.PERF_ATTR_SIZE_VER1, Config: unix.PERF_COUNT_SW_DUMMY, Bits: unix.PerfBitDisabled | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}, n, -1, -1, 0)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	},
	"vmwrite": func(pid string) error {
		n, _ := strconv.Atoi(pid)
		err := sys(unix.SYS_PROCESS_VM_WRITEV, uintptr(n))
		if err == unix.EINVAL { //nolint:errorlint // an errno
			return nil
		}
		return err
	},
}
