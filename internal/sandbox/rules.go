package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

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
		if _, err := os.Lstat(n); err != nil { //nolint:gosec // most are not there, and this is quicker
			continue
		}
		if to, err := filepath.EvalSymlinks(n); err == nil {
			s.add(access, to)
		}
	}
}

// keep makes an existing folder, or a link, a mount of its own, which cannot be renamed.
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
		s.link(inside.Hide, p.Hide...)
	}
	r.runtimes(s, plan)
	s.paths(inside.Read, p.Read)
	if !plan.Landlock {
		s.paths(inside.Write, p.Partly)
	}
	s.paths(inside.Write, p.Write)
	r.protect(s, plan)
	if err := hideMachine(p, s, plan, r.box.Yaya); err != nil {
		return err
	}
	r.ofYaya(s, plan)
	for _, name := range []string{p.Cache, p.Tmp, r.system.tmp} {
		if err := r.leads(name); err != nil {
			return err
		}
	}
	if p.Cache != "" {
		if err := os.MkdirAll(p.Cache, 0o700); err != nil { //nolint:forbidigo,gosec // the caller's own
			return fmt.Errorf("cache of the sandbox: %w", err)
		}
		if to, err := os.Readlink(p.Cache); err == nil {
			return fmt.Errorf("cache of the sandbox: %s is a symbolic link to %s: remove it", p.Cache, to)
		}
		s.link(inside.Write, p.Cache)
		if err := r.addFetched(s, plan); err != nil {
			return err
		}
	}
	if r.system.tmp != "" {
		s.link(inside.Write, r.system.tmp)
	} else if p.Tmp != "" && !plan.Mounts {
		s.link(inside.Write, p.Tmp)
	}
	before := len(s.all)
	if err := r.program(s, plan); err != nil {
		return err
	}
	if err := r.onlyBehind(s.all[before:]); err != nil {
		return err
	}
	if err := r.secondPaths(s, plan); err != nil {
		return err
	}
	if !p.HostWrites {
		s.keepNamed(plan)
	}
	if err := r.hideSockets(s, plan); err != nil {
		return err
	}
	plan.Rules = inside.Sort(s.all)
	r.tellUnseen(plan)
	return r.inTmp(plan)
}

// leads refuses a folder of the sandbox's own that leads to yaya's: where only Landlock
// keeps a program of the user's, it can put a link in the place of the caches.
func (r *Run) leads(name string) error {
	if name == "" {
		return nil
	}
	to := real(name)
	for _, own := range r.own() {
		if inside.Covers(own, to) || inside.Covers(to, own) {
			return fmt.Errorf("%s leads to %s, where yaya has %s: remove it", name, to, own)
		}
	}
	return nil
}

// inTmp makes the places in a /tmp of the policy where something of the host is mounted,
// whatever programs have put there.
func (r *Run) inTmp(plan *inside.Plan) error {
	if r.policy.Tmp == "" || !plan.Mounts {
		return nil
	}
	top := real("/tmp")
	root, err := os.OpenRoot(r.policy.Tmp)
	if err != nil {
		return fmt.Errorf("temporary folder of the sandbox: %w", err)
	}
	defer func() { _ = root.Close() }()
	for _, rule := range plan.Rules {
		rel, below := strings.CutPrefix(rule.Path, top+"/")
		if !below || rule.Access != inside.Read && rule.Access != inside.Write {
			continue
		}
		info, err := os.Stat(cmp.Or(rule.From, rule.Path))
		if err != nil {
			return fmt.Errorf("temporary folder of the sandbox: %w", err)
		}
		for i, c := range rel + "/" {
			if c != '/' {
				continue
			}
			if err := mountpoint(root, rel[:i], i < len(rel) || info.IsDir()); err != nil {
				return fmt.Errorf("temporary folder of the sandbox: %w", err)
			}
		}
	}
	return nil
}

// runtimes shows the files of runtimes, unless they contain something hidden.
func (r *Run) runtimes(s *rules, plan *inside.Plan) {
	for _, p := range r.policy.Runtimes {
		if r.secret(p.name) || covered(s.all, p.name) || r.planted(p) {
			continue
		}
		if inside.Effective(inside.Sort(s.all), p.name, plan.Otherwise()) != inside.Read {
			s.paths(inside.Read, []Path{p})
		}
	}
}

// ofYaya hides yaya's own folders, and makes its program read-only: the next start would
// run another one without a sandbox. Where a folder above one can be written, nobody puts
// another in its place.
func (r *Run) ofYaya(s *rules, plan *inside.Plan) {
	hidden, readable := r.box.own(), r.everyPath(reals(r.box.Readable))
	if plan.Landlock { // it does not make a file read-only in a folder that can be written
		hidden, readable = append(hidden, slices.DeleteFunc(readable, isDir)...), nil // what replaces a file there is granted to nobody
	}
	if r.policy.HostWrites && !plan.Landlock { // which would refuse every new name beside them
		for _, name := range r.policy.Hide {
			hidden = append(hidden, real(name))
		}
	}
	for _, own := range r.everyPath(hidden) {
		s.keepAbove(plan, own)
		s.link(inside.Hide, own)
	}
	for _, own := range readable {
		if inside.Effective(inside.Sort(s.all), own, plan.Otherwise()) == inside.Write {
			s.keepAbove(plan, own)
			s.link(inside.Read, own)
		}
	}
	for _, name := range slices.Concat(r.box.Own, r.box.Readable) {
		s.keepLinks(plan, linksOf(name))
	}
	for _, own := range r.policy.programs {
		for _, name := range r.everyPath([]string{own.name}) {
			if inside.Effective(inside.Sort(s.all), name, plan.Otherwise()) == inside.Write {
				s.keepAbove(plan, name)
				s.paths(inside.Read, []Path{{name: name, dev: own.dev, ino: own.ino}})
			}
		}
	}
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// keepAbove keeps the folders above a path that the program could rename.
func (s *rules) keepAbove(plan *inside.Plan, name string) {
	sorted := inside.Sort(s.all) // to keep a folder changes nothing for those above it
	for dir := filepath.Dir(name); plan.Mounts && dir != "/"; dir = filepath.Dir(dir) {
		if inside.Effective(sorted, dir, plan.Otherwise()) == inside.Write {
			s.keep(dir)
		}
	}
}

// keepLinks keeps links, within what can be written: whoever follows them later, such as
// the next start of yaya, follows what is there then.
func (s *rules) keepLinks(plan *inside.Plan, links [][2]string) {
	for _, l := range links {
		link := l[0]
		if s.keeps(link) || inside.Effective(inside.Sort(s.all), link, plan.Otherwise()) != inside.Write {
			continue
		}
		if plan.Landlock { // which then grants what is beside it, without the folder
			s.add(inside.Hide, link)
			continue
		}
		s.keepAbove(plan, link)
		s.keep(link)
	}
}

// keeps reports whether a link is kept already.
func (s *rules) keeps(link string) bool {
	return slices.ContainsFunc(s.all, func(r inside.Rule) bool { return r.Kept && r.Path == link })
}

// planted reports whether a link that leads to a path lies where a program may have put
// it: in what the policy names.
func (r *Run) planted(p Path) bool {
	return slices.ContainsFunc(p.links, func(link [2]string) bool {
		return slices.ContainsFunc(slices.Concat(r.policy.Read, r.policy.Write), func(named Path) bool { return inside.Covers(named.name, link[0]) })
	})
}

// keepNamed keeps the folders above what is hidden, or named by itself, within what can
// be written. Otherwise a program could rename one, and find it at the next start under
// a name that no rule covers.
func (s *rules) keepNamed(plan *inside.Plan) {
	if !plan.Mounts {
		return // Landlock refuses to rename folders that hold something narrower
	}
	named := inside.Sort(s.all)
	ruled := map[string]bool{}
	for _, r := range named {
		ruled[r.Path] = true
	}
	for _, r := range named {
		if r.Access == inside.Write && !plan.Strict {
			continue // no more than what it lies in
		}
		for dir := filepath.Dir(r.Path); !ruled[dir] && dir != "/" && inside.Effective(named, dir, plan.Otherwise()) == inside.Write; dir = filepath.Dir(dir) {
			ruled[dir] = true
			s.keep(dir)
		}
	}
}

// ofProfile adds the paths of the profile that a policy does not name.
func (r *Run) ofProfile(s *rules, plan *inside.Plan) {
	p := &r.policy
	if p.Strict {
		for _, name := range ofSystem[runtime.GOOS] {
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
	s.add(inside.Private, real("/tmp"), real("/var/tmp"))
	if p.Tmp != "" && plan.Mounts {
		s.all = append(s.all, inside.Rule{Path: real("/tmp"), Access: inside.Private, From: real(p.Tmp)})
	}
	s.link(inside.Hide, "/run")
	if plan.Landlock {
		s.add(inside.Hide, "/dev")
		s.add(inside.Write, inside.Devices...)
		s.link(inside.Write, ownTerminals(p)...) // who sees the others reads what is typed there
	}
	if p.Net.Mode == Host {
		s.link(inside.Read, "/etc/resolv.conf", "/run/systemd/resolve/stub-resolv.conf")
	}
	hidden := credentialPaths(p.Home, r.dir)
	s.link(inside.Hide, hidden...)
	for _, to := range linkedCredentials(p.Home, hidden, r.shows(hidden)) {
		// A link may lead to a program (~/.docker/cli-plugins). A folder that holds something
		// hidden is not shown as a runtime, and all programs beside that one would be gone.
		if !slices.ContainsFunc(p.Runtimes, func(of Path) bool { return inside.Covers(of.name, to) }) {
			s.add(inside.Hide, to)
		}
	}
	if os.Geteuid() == 0 {
		s.link(inside.Hide, ofRoot()...)
	}
}

// ownTerminals are the paths of the terminal that the program shares with this process.
func ownTerminals(p *Policy) (names []string) {
	for fd := 0; p.Terminal && fd < 3; fd++ {
		if name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil && strings.HasPrefix(name, "/dev/pts/") {
			names = append(names, name)
		}
	}
	return names
}

// protect makes protected paths read-only, and the folders above them, up to the one
// that can be written, mounts of their own: those cannot be renamed away. It takes rights
// away and gives none: a link in a workspace may lead to what the program does not see.
func (r *Run) protect(s *rules, plan *inside.Plan) {
	granted, own := inside.Sort(s.all), r.own() // which is hidden later, whatever lies deeper
	protect := slices.DeleteFunc(slices.Clone(r.policy.Protect), func(p Path) bool {
		return inside.Effective(granted, p.name, plan.Otherwise()) != inside.Write || Within(own, p.name)
	})
	for _, p := range protect {
		for _, w := range slices.Concat(r.policy.Write, r.policy.Partly) {
			if !inside.Covers(w.name, p.name) {
				continue
			}
			for dir := filepath.Dir(p.name); inside.Covers(w.name, dir) && dir != w.name; dir = filepath.Dir(dir) {
				if inside.Effective(granted, dir, plan.Otherwise()) == inside.Write {
					s.keep(dir)
				}
			}
		}
	}
	s.paths(inside.Read, protect) // one may lie above another: it is read-only as well
	for _, p := range r.policy.Protect {
		s.keepLinks(plan, p.links)
	}
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
