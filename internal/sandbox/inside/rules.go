package inside

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Devices are the devices of a /dev of the sandbox's own.
var Devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// Sort orders rules for a plan: shallow ones first, and of several for one path the
// last one alone.
func Sort(rules []Rule) []Rule {
	last := map[string]Rule{}
	for _, r := range rules {
		r.Path = path.Clean(r.Path)
		last[r.Path] = r
	}
	sorted := make([]Rule, 0, len(last))
	for _, r := range last {
		sorted = append(sorted, r)
	}
	slices.SortFunc(sorted, func(a, b Rule) int {
		return cmp.Or(cmp.Compare(depth(a.Path), depth(b.Path)), cmp.Compare(a.Path, b.Path))
	})
	return sorted
}

func depth(path string) int {
	if path == "/" {
		return 0
	}
	return strings.Count(path, "/")
}

// Covers reports whether a path is another one, or below it.
func Covers(top, path string) bool {
	return top == path || top == "/" || strings.HasPrefix(path, top+"/")
}

// Effective returns the access that sorted rules grant for a path, or otherwise if
// none covers it.
func Effective(sorted []Rule, path string, otherwise Access) Access {
	for _, r := range slices.Backward(sorted) {
		if Covers(r.Path, path) {
			return r.Access
		}
	}
	return otherwise
}

// Otherwise returns the access that the plan grants where no rule applies.
func (p *Plan) Otherwise() Access {
	switch {
	case p.Strict:
		return Hide
	case p.HostWrites:
		return Write
	default:
		return Read
	}
}
