package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

func newProber() *prober {
	p := &prober{about: func() Report {
		r := Report{System: "Linux " + kernel(), User: "ordinary user", Group: ownGroups().why}
		if os.Geteuid() == 0 {
			r.User = "root"
		}
		return r
	}}
	for _, name := range []string{Namespaces, Bwrap, Landlock} {
		p.ends = append(p.ends, &backEnd{name: name, try: func() found {
			reply, err := try(name)
			if err == nil {
				return found{landlock: reply.Landlock, hostProc: reply.HostProc, changes: noChanges(reply)}
			}
			f := found{why: err.Error(), final: final(err)}
			if name == Namespaces {
				f.why, f.fix = explain(err)
				f.final = f.final || f.fix != "" && strings.Contains(f.fix, "sysctl")
			}
			return f
		}})
	}
	return p
}

// noChanges says why the keeper cannot change files for a program, "" if it can.
func noChanges(reply *inside.Reply) string {
	if reply.NoAnswer {
		return "a filter of system calls around yaya, such as that of a sandbox, is answered already"
	}
	data, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope") //nolint:forbidigo // a kernel file
	if scope := strings.TrimSpace(string(data)); err == nil && scope > "1" {
		return "no process may look into another (kernel.yama.ptrace_scope is " + scope + ")"
	}
	return ""
}

// final reports whether a failure is a refusal that does not pass. The first process of
// a sandbox, and bubblewrap, say in words what failed.
func final(err error) bool {
	said := strings.ToLower(err.Error())
	for _, refusal := range []error{unix.EPERM, unix.EACCES, unix.ENOSYS, unix.EINVAL} {
		if errors.Is(err, refusal) || strings.Contains(said, refusal.Error()) {
			return true
		}
	}
	return false
}

func kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "of unknown version"
	}
	return unix.ByteSliceToString(u.Release[:])
}

// try starts a sandbox that does everything but a program.
func try(backend string) (*inside.Reply, error) {
	p, err := Profile("check")
	if err != nil {
		return nil, err
	}
	run := &Run{box: &Box{}, policy: p, Enforced: Enforced{Backend: backend}, trial: true}
	defer run.Ended()
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Dir = "/"
	var said bytes.Buffer // bubblewrap's reason
	cmd.Stderr = &said
	if err := run.Wrap(cmd); err != nil {
		return nil, err
	}
	run.system.plan.Probe = true
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a process in namespaces of its own: %w", err)
	}
	_ = run.system.theirs.Close()
	reply, files, err := run.exchange()
	closeFiles(files)
	err = errors.Join(err, cmd.Wait())
	if reply != nil && reply.Error != "" {
		err = errors.New(reply.Error)
		if why := strings.TrimSpace(said.String()); why != "" {
			err = errors.New(why)
		}
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	return reply, nil
}

// explain says why namespaces cannot be had, and what would change it.
func explain(err error) (why, fix string) {
	read := func(name string) string {
		data, err := os.ReadFile("/proc/sys/" + name) //nolint:forbidigo,gosec // a kernel file
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(data))
	}
	switch {
	case read("user/max_user_namespaces") == "0":
		return "this system allows no user namespaces (user.max_user_namespaces is 0)", "sudo sysctl -w user.max_user_namespaces=15000"
	case read("kernel/unprivileged_userns_clone") == "0":
		return "this system allows user namespaces to root alone (kernel.unprivileged_userns_clone is 0)", "sudo sysctl -w kernel.unprivileged_userns_clone=1"
	case read("kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "AppArmor allows user namespaces only to programs with a profile: " + err.Error(), apparmor()
	case contained():
		return "the container that yaya runs in refuses: " + err.Error(), "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined … (or podman run, with the same options)"
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL):
		return err.Error() + " (Linux 5.12 or later is needed)", ""
	default:
		return err.Error(), ""
	}
}

// apparmor is the command that gives this program a profile of its own.
func apparmor() string {
	self, err := os.Executable()
	if err != nil || strings.ContainsAny(self, "'\"\\ \n") {
		self = "/usr/local/bin/yaya"
	}
	return fmt.Sprintf(`printf 'abi <abi/4.0>,\nprofile yaya "%s" flags=(unconfined) {\n  userns,\n}\n' | sudo tee /etc/apparmor.d/yaya && sudo apparmor_parser -r /etc/apparmor.d/yaya`, self)
}

// contained reports whether this process runs in a container.
func contained() bool {
	for _, name := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(name); err == nil {
			return true
		}
	}
	return false
}
