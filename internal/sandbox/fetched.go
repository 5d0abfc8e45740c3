package sandbox

import "github.com/yaya-ai/yaya/internal/sandbox/inside"

// working reports whether the program works on files of the user's, with tools of the
// user's, as those of an agent do: package managers then find what the host has.
func (p *Policy) working() bool { return p.Cache != "" && !p.Strict && !p.HostWrites }

// lookAtManagers looks at what package managers on the host are set to.
func (r *Run) lookAtManagers(env []string) {
	if r.policy.working() {
		r.golang = hostGo(env, r.policy.Home)
	}
}

// managersEnv are the variables of package managers that depend on the host's.
func (r *Run) managersEnv(network bool) (vars [][2]string) {
	if g := r.golang; g != nil {
		vars = append(vars, g.environ(r.policy.Cache, r.policy.Net.Mode, network && r.policy.Net.Mode == Hosts)...)
	}
	if r.cargoHome != "" {
		vars = append(vars, [2]string{"CARGO_HOME", r.cargoHome})
	}
	return vars
}

// addFetched has the sandbox find what package managers on the host have fetched.
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
	return r.cargo(s, plan)
}
