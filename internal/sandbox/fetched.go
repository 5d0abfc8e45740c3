package sandbox

import (
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// working reports whether the program works on files of the user's, with tools of the
// user's, as those of an agent do: package managers then find what the host has.
func (p *Policy) working() bool { return p.Cache != "" && !p.Strict && !p.HostWrites }

// lookAtManagers reads the settings of the host's package managers.
func (r *Run) lookAtManagers(env []string) {
	if r.policy.working() {
		r.golang = hostGo(env, r.policy.Home)
	}
}

// managersEnv are the variables of package managers that depend on the host's, on what
// the program's environment says, and on the mounts.
func (r *Run) managersEnv(env []string, mounts, network bool) (vars [][2]string) {
	// uv makes hard links from its cache, and warns each time that it cannot.
	set := slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "UV_LINK_MODE=") })
	if r.policy.working() && !set && (mounts || r.cacheApart()) {
		vars = append(vars, [2]string{"UV_LINK_MODE", "copy"})
	}
	if g := r.golang; g != nil {
		vars = append(vars, g.environ(r.policy.Cache, r.policy.Net.Mode, network && r.policy.Net.Mode == Hosts)...)
	}
	if r.cargoHome != "" {
		vars = append(vars, [2]string{"CARGO_HOME", r.cargoHome})
	}
	return vars
}

// addFetched lets the sandbox use packages that the host's package managers have
// fetched.
func (r *Run) addFetched(s *rules, plan *inside.Plan) error {
	if r.golang != nil {
		if err := r.golang.link(r.policy.Cache); err != nil {
			return err
		}
	}
	if !r.policy.working() {
		return nil
	}
	if err := r.npmrc(s, plan); err != nil {
		return err
	}
	if err := r.blank(s, plan); err != nil {
		return err
	}
	return r.cargo(s, plan)
}

// cacheApart reports whether the cache is on another file system than something that the
// program works in.
func (r *Run) cacheApart() bool {
	device := func(name string) (uint64, bool) {
		id, _, err := hostfile.Named(name)
		return id.Dev, err == nil
	}
	at, known := device(r.policy.Cache)
	return known && slices.ContainsFunc(r.policy.Write, func(p Path) bool {
		dev, there := device(p.name)
		return there && dev != at
	})
}
