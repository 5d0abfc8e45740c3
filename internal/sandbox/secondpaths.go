package sandbox

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/yaya-ai/yaya/internal/mounts"
	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// Rules name paths, and a file system that is mounted twice shows a file under several. The
// functions here find the others of a path (package mounts), once the rules of a plan stand,
// whatever the back end.

// maxSecond bounds the rules about second paths of one plan. Each is a mount of the sandbox.
const maxSecond = 512

// lookAtMounts returns the mounts of this process. Tests replace it.
var lookAtMounts = mounts.Here

// unknownMounts describes the gap if the mounts are not known.
func (e *Enforced) unknownMounts(why string) {
	if why == "" || e.Backend == None {
		return
	}
	e.Has &^= NeedHidden | NeedProtect
	e.miss("a file that is hidden or protected can be reached by a second path, such as of a bind mount: " + why)
}

// everyPath returns the names, and the other paths of each.
func (r *Run) everyPath(names []string) []string {
	all := slices.Clone(names)
	for _, name := range names {
		for _, other := range r.mounts.Others(name, mounts.Content) {
			if !slices.Contains(all, other) {
				all = append(all, other)
			}
		}
	}
	return all
}

// samePaths returns a path and the others that lead to the same file. Where the mounts are
// not known it is alone: a sandbox says what that means.
func samePaths(name string) []string {
	table, err := lookAtMounts()
	if err != nil {
		return []string{name}
	}
	return append([]string{name}, table.Same(name)...)
}

// own are yaya's folders by every path that leads to them.
func (r *Run) own() []string {
	if r.owned == nil {
		r.owned = r.everyPath(r.box.own())
	}
	return r.owned
}

// secondPaths hides what is hidden at its other paths, and makes what is read-only within a
// writable folder read-only there. A path that the policy itself names stays: so it is with
// the first one.
func (r *Run) secondPaths(s *rules, plan *inside.Plan) error {
	if r.mounts == nil {
		return nil
	}
	sorted := inside.Sort(s.all)
	more := 0
	add := func(access inside.Access, name string) error {
		have := inside.Effective(sorted, name, plan.Otherwise())
		if have == inside.Hide || have == inside.Private || have == access || r.names(name) {
			return nil
		}
		if more++; more > maxSecond {
			return fmt.Errorf("there are more than %d second paths to what a sandbox hides: unmount some of what is mounted twice (findmnt)", maxSecond)
		}
		s.add(access, name)
		return nil
	}
	for i, rule := range sorted {
		access, depth := restricts(rule, sorted[:i], plan)
		if access == "" || nothing(rule.Path) {
			continue
		}
		for _, other := range r.mounts.Others(rule.Path, depth) {
			if other == "/" {
				if depth == mounts.Itself {
					continue
				}
				return fmt.Errorf("%s, which the sandbox hides or protects, is the root folder, which it cannot", rule.Path)
			}
			if err := errors.Join(shownElsewhere(sorted, other), add(access, other)); err != nil {
				return err
			}
		}
	}
	if plan.Own { // of which the sandbox has its own; those of the host may be elsewhere
		for _, name := range []string{"/proc", "/dev"} {
			for _, other := range r.mounts.Others(name, mounts.Itself) {
				if err := add(inside.Hide, other); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// shownElsewhere refuses a second path that lies in what the sandbox shows at another place,
// such as its /tmp: no rule is about that place.
func shownElsewhere(sorted []inside.Rule, second string) error {
	for _, shown := range sorted {
		if shown.From != "" && inside.Covers(shown.From, second) {
			return fmt.Errorf("%s, which the sandbox shows as %s, has a hidden file mounted in it: unmount %s", shown.From, shown.Path, second)
		}
	}
	return nil
}

// names reports whether the policy names a path.
func (r *Run) names(name string) bool {
	return slices.ContainsFunc(slices.Concat(r.policy.Read, r.policy.Write, r.policy.Partly), func(p Path) bool { return p.name == name })
}

// restricts returns what a rule takes away at its path, and how much of the folder counts;
// "" if it takes nothing away. wider are the rules that come before it.
func restricts(rule inside.Rule, wider []inside.Rule, plan *inside.Plan) (inside.Access, mounts.Depth) {
	switch {
	case rule.Kept || rule.Access == inside.Write && rule.From == "":
		return "", 0
	case rule.Access == inside.Private:
		return inside.Hide, mounts.Itself
	case rule.From != "": // something else lies there in the sandbox
		return inside.Hide, mounts.Content
	case rule.Access == inside.Hide && (rule.Path == "/run" || rule.Path == "/dev"):
		// Parts of these are mounted elsewhere so that they are seen: /etc/resolv.conf, in
		// containers. Sockets are looked for one by one.
		return inside.Hide, mounts.Itself
	case rule.Access == inside.Read && inside.Effective(wider, rule.Path, plan.Otherwise()) != inside.Write:
		return "", 0
	}
	return rule.Access, mounts.Content
}

// nothing reports whether a path is masked already, by the device that everybody needs.
func nothing(name string) bool {
	null, err := os.Stat("/dev/null")
	info, at := os.Lstat(name) //nolint:gosec // it is looked at, no more
	if errors.Join(err, at) != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	return sameDevice(null, info)
}
