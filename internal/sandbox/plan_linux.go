package sandbox

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// makePlan says what the first process has to do for a command.
func (r *Run) makePlan(cmd *exec.Cmd) (*inside.Plan, error) {
	p := &r.policy
	alone := r.Enforced.Backend == Landlock
	plan := &inside.Plan{
		Path: cmd.Path, Argv: cmd.Args, Terminal: p.Terminal,
		Mounts: !alone, Init: !alone && !p.HostWrites, Own: !alone && !p.HostWrites,
		Strict: p.Strict, HostWrites: p.HostWrites, Tmp: p.Limits.Memory,
		Landlock: alone, Writes: !alone && !p.HostWrites, Scope: p.HostWrites || alone, Abstract: alone && !p.HostWrites,
		Data: uint64(max(0, p.Limits.Memory)), Tasks: uint64(max(0, p.Limits.Processes)), Time: int64(p.Limits.Time),
		Filter: inside.Filter{Nested: p.Browser, Unix: p.Unix, NoInet: p.Net.Mode == Off},
	}
	if p.HostWrites && !alone && os.Geteuid() == 0 {
		plan.Caps = rootCaps
	}
	if alone {
		plan.Filter.NoInet = p.Net.Mode != Host
		plan.Filter.Unix = p.Unix && r.landlock >= inside.LandlockUnix
	} else if p.Net.Mode == Loopback || p.Net.Mode == Hosts || len(p.Endpoints) > 0 && p.Net.Mode == Off {
		plan.Loopback = true
		plan.Filter.NoInet = false
		for _, e := range r.endpoints() {
			at, err := netip.ParseAddrPort(e.Addr)
			if err != nil || !at.Addr().Is4() {
				return nil, fmt.Errorf("endpoint %q: not an IPv4 address with a port", e.Addr)
			}
			plan.Listen = append(plan.Listen, inside.Addr{IP: at.Addr().As4(), Port: at.Port()})
		}
	}
	dir, err := Open(cmp.Or(cmd.Dir, "."))
	if err != nil {
		return nil, err
	}
	if p.Strict && plan.Mounts { // where the host's links are not
		plan.Aliases = append(linksOf(plan.Path), dir.links...)
		for _, path := range append(append([]Path{}, p.Read...), p.Write...) {
			plan.Aliases = append(plan.Aliases, path.links...)
		}
	}
	if plan.Dir = dir.name; dir.name != "/" { // which is always another one
		plan.DirDev, plan.DirIno = dir.dev, dir.ino
	}
	_ = dir.file.Close() // the caller's own, and a start that takes no time
	if alone {
		if r.system.tmp, err = os.MkdirTemp("", "yaya-sandbox-"); err != nil {
			return nil, fmt.Errorf("make a temporary folder: %w", err)
		}
	}
	if err := r.addRules(plan); err != nil {
		return nil, err
	}
	plan.Env = environ(p, cmd.Env, r.system.tmp)
	plan.Keep = len(cmd.ExtraFiles)
	if r.Enforced.Backend == Bwrap {
		r.system.around, err = bubble(plan)
	}
	return plan, err
}

// rules collects what a plan grants. Later rules for a path win.
type rules struct {
	all []inside.Rule
}

func (s *rules) add(access inside.Access, names ...string) {
	for _, n := range names {
		s.all = append(s.all, inside.Rule{Path: n, Access: access})
	}
}

// link adds rules for paths that may be links, where they exist.
func (s *rules) link(access inside.Access, names ...string) {
	for _, n := range names {
		if to, err := filepath.EvalSymlinks(n); err == nil {
			s.add(access, to)
		}
	}
}

// keep makes an existing folder a mount of its own, which cannot be renamed.
func (s *rules) keep(dir string) {
	if _, err := os.Lstat(dir); err == nil { //nolint:gosec // a folder above what a policy names
		s.all = append(s.all, inside.Rule{Path: dir, Access: inside.Write, Kept: true})
	}
}

func (s *rules) paths(access inside.Access, paths []Path) {
	for _, p := range paths {
		s.all = append(s.all, inside.Rule{Path: p.name, Access: access, Dev: p.dev, Ino: p.ino})
	}
}

func (r *Run) addRules(plan *inside.Plan) error {
	p := &r.policy
	s := &rules{}
	if !p.HostWrites {
		r.ofProfile(s, plan)
	}
	s.link(inside.Hide, p.Hide...)
	s.paths(inside.Read, p.Read)
	s.paths(inside.Write, p.Write)
	r.protect(s)
	if p.HostWrites && os.Geteuid() == 0 {
		if err := hideMachine(s, plan); err != nil {
			return err
		}
	}
	r.ofYaya(s, plan)
	if p.Cache != "" {
		if err := os.MkdirAll(p.Cache, 0o700); err != nil { //nolint:forbidigo,gosec // the caller's own
			return fmt.Errorf("cache of the sandbox: %w", err)
		}
		s.link(inside.Write, p.Cache)
	}
	if r.system.tmp != "" {
		s.link(inside.Write, r.system.tmp)
	}
	if err := r.program(s, plan); err != nil {
		return err
	}
	if !p.HostWrites && plan.Mounts {
		if err := hideSockets(s, plan); err != nil {
			return err
		}
	}
	plan.Rules = inside.Sort(s.all)
	return nil
}

// ofYaya hides yaya's own folders. Where a folder above one can be written, nobody puts
// another in its place.
func (r *Run) ofYaya(s *rules, plan *inside.Plan) {
	for _, own := range r.box.own() {
		for dir := filepath.Dir(own); plan.Mounts && dir != "/"; dir = filepath.Dir(dir) {
			if inside.Effective(inside.Sort(s.all), dir, plan.Otherwise()) == inside.Write {
				s.keep(dir)
			}
		}
		s.link(inside.Hide, own)
	}
}

// hideMachine hides what lets root read the disk and the memory behind all mounts,
// and keeps the settings of the kernel, some of which name programs that it starts.
func hideMachine(s *rules, plan *inside.Plan) error {
	s.link(inside.Hide, "/dev/mem", "/dev/kmem", "/dev/port")
	if plan.Mounts {
		s.link(inside.Hide, "/proc/kcore", "/proc/sysrq-trigger")
		s.link(inside.Read, "/proc/sys", "/sys")
	} else { // Landlock would have to name every process that is to come
		s.link(inside.Read, "/proc", "/sys")
	}
	disks, err := os.ReadDir("/sys/class/block")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("look for disks: %w", err)
	}
	for _, d := range disks {
		s.link(inside.Hide, "/dev/"+strings.ReplaceAll(d.Name(), "!", "/"))
	}
	return nil
}

// ofProfile adds what is not named in a policy.
func (r *Run) ofProfile(s *rules, plan *inside.Plan) {
	p := &r.policy
	if p.Strict {
		for _, name := range ofSystem {
			switch to, err := os.Readlink(name); {
			case err == nil && plan.Mounts:
				plan.Links = append(plan.Links, [2]string{name, to})
			default:
				s.link(inside.Read, name)
			}
		}
		if plan.Landlock {
			s.add(inside.Read, "/proc")
		}
		if p.Home != "" && plan.Mounts {
			s.add(inside.Private, real(p.Home))
		}
	}
	s.add(inside.Private, "/tmp", "/var/tmp")
	s.link(inside.Hide, "/run")
	if plan.Landlock {
		s.add(inside.Hide, "/dev")
		s.add(inside.Write, inside.Devices...)
		s.add(inside.Write, "/dev/ptmx", "/dev/pts")
	}
	if p.Net.Mode == Host {
		s.link(inside.Read, "/etc/resolv.conf", "/run/systemd/resolve/stub-resolv.conf")
	}
	for _, name := range credentials {
		if p.Home != "" {
			s.link(inside.Hide, filepath.Join(p.Home, name))
		}
	}
	if os.Geteuid() == 0 {
		s.link(inside.Hide, ofRoot...)
	}
}

// protect makes protected paths read-only, and the folders above them, up to the one
// that can be written, mounts of their own: those cannot be renamed away.
func (r *Run) protect(s *rules) {
	for _, p := range r.policy.Protect {
		for _, w := range r.policy.Write {
			if !inside.Covers(w.name, p.name) {
				continue
			}
			for dir := filepath.Dir(p.name); inside.Covers(w.name, dir) && dir != w.name; dir = filepath.Dir(dir) {
				s.keep(dir)
			}
		}
	}
	s.paths(inside.Read, r.policy.Protect)
}

// program adds what the program itself is run from, where that is hidden.
func (r *Run) program(s *rules, plan *inside.Plan) error {
	to, err := filepath.EvalSymlinks(plan.Path)
	if err != nil {
		return fmt.Errorf("start %s: %w", plan.Path, err)
	}
	for _, own := range r.box.own() {
		if inside.Covers(own, to) {
			return fmt.Errorf("%s cannot run in a sandbox: it belongs to yaya itself", to)
		}
	}
	sorted := inside.Sort(s.all)
	if a := inside.Effective(sorted, to, plan.Otherwise()); a == inside.Read || a == inside.Write {
		return nil
	}
	// A runtime such as Node or Python has what it needs beside its bin folder.
	tree := to
	if bin := filepath.Dir(to); filepath.Base(bin) == "bin" {
		above := filepath.Dir(bin)
		if above != "/" && !inside.Covers(above, r.policy.Home) && !covered(s.all, above) {
			tree = above
		}
	}
	s.link(inside.Read, tree)
	if plan.Path != to { // by the name it was called, too
		dir := real(filepath.Dir(plan.Path))
		if a := inside.Effective(sorted, dir, plan.Otherwise()); a != inside.Read && a != inside.Write && dir != "/" && !inside.Covers(dir, r.policy.Home) {
			s.link(inside.Read, dir)
		}
	}
	return nil
}

// covered reports whether a folder holds something hidden by a rule.
func covered(all []inside.Rule, dir string) bool {
	for _, r := range all {
		if r.Access != inside.Read && r.Access != inside.Write && inside.Covers(dir, r.Path) {
			return true
		}
	}
	return false
}

// maxSockets bounds how many sockets of the host are hidden one by one.
const maxSockets = 1024

// hideSockets hides the sockets at paths of the host, to which a read-only mount is
// no obstacle. Those in what the policy names are hidden as well: whoever listens
// there has not agreed to a program in a sandbox.
func hideSockets(s *rules, plan *inside.Plan) error {
	f, err := os.Open("/proc/net/unix") //nolint:forbidigo // a kernel file
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for sockets: %w", err)
	}
	defer func() { _ = f.Close() }()
	sorted := inside.Sort(s.all)
	lines := bufio.NewScanner(io.LimitReader(f, 16<<20))
	found := map[string]bool{}
	for lines.Scan() {
		at := strings.IndexByte(lines.Text(), '/')
		if at < 0 {
			continue
		}
		name := filepath.Clean(lines.Text()[at:])
		if a := inside.Effective(sorted, name, plan.Otherwise()); found[name] || a != inside.Read && a != inside.Write {
			continue
		}
		info, err := os.Lstat(name)
		if err != nil || info.Mode()&os.ModeSocket == 0 {
			continue
		}
		if found[name] = true; len(found) > maxSockets {
			return fmt.Errorf("there are more than %d sockets to hide from the sandbox", maxSockets)
		}
		s.link(inside.Hide, name)
	}
	return lines.Err()
}
