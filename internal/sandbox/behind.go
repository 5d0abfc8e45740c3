package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// RuntimesOf returns the files that the programs in the folders of a PATH consist
// of: those of [Runtimes] for each folder and its link target.
func RuntimesOf(home, search string) []string {
	var all []string
	for _, dir := range filepath.SplitList(search) {
		if !filepath.IsAbs(dir) {
			continue
		}
		for _, at := range []string{dir, real(dir)} {
			for _, name := range Runtimes(home, at) {
				if !slices.Contains(all, name) {
					all = append(all, name)
				}
			}
		}
	}
	return all
}

// Behind returns the files and folders that a strict sandbox shows because of its program:
// the installation of the program and its interpreters, in addition to the system, the
// runtimes and granted paths. A policy with exactly these as its Behind shows no others.
func Behind(home, program string, env, runtimes, granted []string) []string {
	r := &Run{box: &Box{}, policy: Policy{Strict: true, Home: home}}
	for _, name := range granted {
		r.policy.Read = append(r.policy.Read, Path{name: real(name)})
	}
	for _, name := range runtimes {
		r.policy.Runtimes = append(r.policy.Runtimes, Path{name: real(name), links: linksOf(name)})
	}
	s, plan := &rules{}, &inside.Plan{Path: program, Env: env, Strict: true, Mounts: true}
	r.ofProfile(s, plan)
	r.runtimes(s, plan)
	s.paths(inside.Read, r.policy.Read)
	before := len(s.all)
	_ = r.program(s, plan) // a start says why it fails
	all := []string{}
	for _, rule := range s.all[before:] {
		if !slices.Contains(all, rule.Path) {
			all = append(all, rule.Path)
		}
	}
	return all
}

// onlyBehind refuses paths that would be shown because of the program and are not
// in the policy's Behind.
func (r *Run) onlyBehind(shown []inside.Rule) error {
	if r.policy.Behind == nil {
		return nil
	}
	for _, rule := range shown {
		if !Within(r.policy.Behind, rule.Path) {
			return fmt.Errorf("the sandbox would show %s, which the program is installed with and nobody was asked about: name it in \"read\"", rule.Path)
		}
	}
	return nil
}
