package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// makePlan says what the first process has to do for a command.
func (r *Run) makePlan(cmd *exec.Cmd) (*inside.Plan, error) {
	p := &r.policy
	alone := r.Enforced.Backend == Landlock
	plan := &inside.Plan{
		Path: cmd.Path, Argv: cmd.Args, Env: cmd.Env, Terminal: p.Terminal,
		Mounts: !alone, Init: !alone && !p.HostWrites, Own: !alone && !p.HostWrites,
		Strict: p.Strict, HostWrites: p.HostWrites, Tmp: p.Limits.Memory,
		Landlock: alone, Writes: !alone && !p.HostWrites, Scope: p.HostWrites || alone, Abstract: alone && !p.HostWrites,
		Data: uint64(max(0, p.Limits.Memory)), Time: int64(p.Limits.Time),
		Filter: inside.Filter{Nested: p.Browser, Unix: p.Unix, NoInet: p.Net.Mode == Off, Shared: alone || p.HostWrites, Files: alone, Bounded: !p.HostWrites},
	}
	if r.Enforced.Backend == Bwrap && !p.HostWrites && os.Geteuid() == 0 {
		plan.Filter.Files = true // bubblewrap makes no device read-only, and root owns the host's
	}
	var err error
	if plan.Tasks, err = limitOfTasks(p.Limits.Processes, alone); err != nil {
		return nil, err
	}
	r.lookAtManagers(cmd.Env)
	if p.HostWrites && !alone && os.Geteuid() == 0 {
		plan.Caps = rootCaps
	}
	if alone {
		plan.Filter.NoInet = p.Net.Mode != Host
		// Landlock 9 bounds the sockets at paths. In guarded those of the host are the
		// program's to use: yaya refuses it at its own.
		plan.Filter.Unix = p.Unix && (p.HostWrites || r.landlock >= inside.LandlockUnix)
	} else if p.Net.Mode == Loopback || p.Net.Mode == Hosts || len(p.Endpoints) > 0 && p.Net.Mode == Off {
		plan.Loopback = true
		plan.Filter.NoInet = false
		if err := r.findEntrances(); err != nil {
			return nil, err
		}
		for _, e := range r.system.entrances {
			noRight := r.Enforced.Backend == Bwrap && e.at.Port() < lowPorts // decide has said it
			plan.Listen = append(plan.Listen, inside.Addr{IP: e.at.Addr().AsSlice(), Port: e.at.Port(), Spare: e.spare || noRight})
		}
	}
	dir, err := Open(cmp.Or(cmd.Dir, "."))
	if err != nil {
		return nil, err
	}
	if p.Strict && plan.Mounts { // where the host's links are not
		plan.Aliases = dir.links // program adds its own
		for _, path := range slices.Concat(p.Read, p.Write, p.Runtimes) {
			plan.Aliases = append(plan.Aliases, path.links...)
		}
	}
	_ = dir.file.Close() // the caller's own, and a start that takes no time
	if alone && p.Tmp == "" {
		if r.system.tmp, err = os.MkdirTemp("", "yaya-sandbox-"); err != nil {
			return nil, fmt.Errorf("make a temporary folder: %w", err)
		}
	}
	plan.Dir, r.dir = dir.name, dir.name
	if err := r.addRules(plan); err != nil {
		return nil, err
	}
	if dir.name != "/" && inside.Effective(plan.Rules, dir.name, plan.Otherwise()) != inside.Private { // those are other ones
		plan.DirDev, plan.DirIno = dir.dev, dir.ino
	}
	plan.Env = environ(p, cmd.Env, r.tmp(alone), "http://"+proxyAddr, r.managersEnv(cmd.Env, plan.Mounts, plan.Loopback)...)
	plan.Keep = len(cmd.ExtraFiles)
	if r.Enforced.Backend == Bwrap {
		r.system.around, err = bubble(plan)
	}
	return plan, err
}

// hideMachine hides what lets root read the disk and the memory behind all mounts,
// and keeps the settings of the kernel, some of which name programs that it starts, and
// the files by which processes are changed, yaya's among them.
func hideMachine(p *Policy, s *rules, plan *inside.Plan, yaya int) error {
	if !p.HostWrites {
		return nil
	}
	root := os.Geteuid() == 0
	switch {
	case !plan.Mounts: // Landlock would have to name every process that is to come
		s.link(inside.Read, "/proc", "/sys")
	case root: // it makes no user namespaces in a sandbox, which are mapped there
		s.link(inside.Read, "/proc", "/sys")
	default:
		s.link(inside.Read, fmt.Sprintf("/proc/%d", os.Getpid()), fmt.Sprintf("/proc/%d", cmp.Or(yaya, os.Getpid())), "/sys/fs/cgroup")
	}
	if !root {
		return nil
	}
	s.link(inside.Hide, "/dev/mem", "/dev/kmem", "/dev/port", "/dev/userfaultfd")
	if plan.Mounts {
		s.link(inside.Hide, "/proc/kcore", "/proc/sysrq-trigger")
	}
	disks, err := os.ReadDir("/sys/class/block")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("look for disks: %w", err)
	}
	for _, d := range disks {
		s.link(inside.Hide, "/dev/"+strings.ReplaceAll(d.Name(), "!", "/"))
	}
	return otherDisks(s)
}

// maxDevices bounds how many names in /dev are looked at.
const maxDevices = 20_000

// otherDisks hides other ways to disks: a disk may have other names that are not links,
// such as those of a device mapper without udev, and devices that pass commands on to it
// (SCSI, NVMe, flash memory), of which the kernel lets everybody read who may open them.
func otherDisks(s *rules) error {
	n := 0
	err := filepath.WalkDir("/dev", func(name string, d fs.DirEntry, err error) error {
		if n++; n > maxDevices {
			return fmt.Errorf("there are more than %d names in /dev to look for disks", maxDevices)
		}
		switch {
		case err != nil:
			return nil //nolint:nilerr // it has gone, or holds nothing that root sees
		case d.IsDir() && slices.Contains([]string{"/dev/pts", "/dev/shm", "/dev/mqueue", "/dev/hugepages"}, name):
			return fs.SkipDir
		case d.Type()&fs.ModeCharDevice != 0 && passesOn(name), d.Type()&fs.ModeDevice != 0 && d.Type()&fs.ModeCharDevice == 0:
			s.add(inside.Hide, name)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for disks: %w", err)
	}
	return nil
}

// passesOn reports whether a device passes commands on to a disk.
func passesOn(name string) bool {
	return slices.ContainsFunc([]string{"/dev/sg[0-9]*", "/dev/bsg/*", "/dev/nvme[0-9]*", "/dev/ng[0-9]*", "/dev/mtd[0-9]*"}, func(pattern string) bool {
		yes, _ := filepath.Match(pattern, name)
		return yes
	})
}
