package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Standing is what sandboxes enforce: what the settings make of what this machine can.
type Standing struct {
	// Report has in Best the back end that is used, "" if none can be, and in Profiles
	// what it enforces.
	Report
	Mode    Mode
	Setting string // the back end that the settings name, or "auto"
	// Refused says why no program starts in a sandbox; "" if they do.
	Refused string
	// Lacks are what the profiles want and do not get, by profile, without those that
	// lack nothing.
	Lacks map[string]Need
}

// Standing says what is enforced with the settings as they are now. The first call
// probes (see [Probe]).
func (s *Sandboxes) Standing() Standing { return standing(Probe(), s.Settings()) }

func standing(r Report, set Settings) Standing {
	st := Standing{Report: r, Mode: set.Mode, Setting: set.Backend, Lacks: map[string]Need{}}
	box := Box{Backend: set.Backend}
	best := r.Best
	var err error
	if err := set.check(); err != nil {
		st.Best, st.Profiles, st.Refused, st.Fix = "", nil, err.Error(), reset("sandbox.mode", string(Prefer), set.ModeFrom)
		return st
	}
	if set.Mode == Without {
		st.Best = None
		st.Why, st.Fix = "the setting sandbox.mode is off", reset("sandbox.mode", string(Prefer), set.ModeFrom)
	} else {
		st.Best, err = box.choose(r)
		if err == nil && st.Best != best {
			st.Why, st.Fix = fmt.Sprintf("the setting sandbox.backend is %s, and %s works", st.Best, best), reset("sandbox.backend", "auto", set.BackendFrom)
		}
	}
	st.Profiles = nil
	if err != nil {
		st.Refused, st.Fix = err.Error(), reset("sandbox.backend", "auto", set.BackendFrom)
		return st
	}
	for _, name := range Profiles() {
		p, err := Profile(name)
		if err != nil {
			continue // each name has one
		}
		e := decide(st.Best, &p, r)
		st.Profiles = append(st.Profiles, e)
		if lacks := p.Wants() &^ e.Has; lacks != 0 {
			st.Lacks[name] = lacks
		}
	}
	return st
}

// SetMode is the command that makes the mode another one. One that a variable decides
// stays what it is while that is set.
func (s Settings) SetMode(to Mode) string {
	if s.ModeFrom != "" {
		return "start yaya again with " + s.ModeFrom + "=" + string(to)
	}
	return "yaya config set sandbox.mode " + string(to)
}

// reset is the command that changes a setting. One that a variable decides stays what it
// is while that is set.
func reset(key, value, from string) string {
	if from != "" {
		return "unset " + from + " (and start yaya again)"
	}
	return "yaya config set " + key + " " + value
}

// Summary says in a sentence how it stands.
func (s Standing) Summary() string {
	why := ""
	if s.Why != "" {
		why = " (" + s.Why + ")"
	}
	switch {
	case s.Refused != "":
		return "no program starts in a sandbox: " + s.Refused
	case s.Best == None:
		return "off: nothing is enforced, programs run with all rights of your user" + why
	case len(s.Lacks) == 0:
		return s.Best + ": all that the profiles want is enforced" + s.inPart(", but %s only in part") + why
	case s.Mode == Require:
		return fmt.Sprintf("%s: programs in the profiles %s do not start: %s%s", s.Best, strings.Join(slices.Sorted(maps.Keys(s.Lacks)), ", "), s.lacked().Lacking(), why)
	default:
		return fmt.Sprintf("%s, weaker than the profiles want: %s%s%s", s.Best, s.lacked().Lacking(), s.inPart("; only in part: %s"), why)
	}
}

// inPart names what is enforced in part, in these words.
func (s Standing) inPart(words string) string {
	var all Need
	for _, e := range s.Profiles {
		all |= e.Partly
	}
	if all == 0 {
		return ""
	}
	return fmt.Sprintf(words, all)
}

// lacked is what any profile lacks.
func (s Standing) lacked() Need {
	var all Need
	for _, n := range s.Lacks {
		all |= n
	}
	return all
}

// Gap is something that is not enforced, or in part, or does not work, in a sentence for a
// person.
type Gap struct {
	What     string
	Profiles []string
}

// Gaps lists what is not enforced, what the most profiles lack first.
func (s Standing) Gaps() []Gap {
	return s.gather(func(e Enforced) []string { return e.Missing })
}

// Breaks lists what the profiles allow and does not work here, what the most have first.
func (s Standing) Breaks() []Gap {
	return s.gather(func(e Enforced) []string { return e.Breaks })
}

func (s Standing) gather(of func(Enforced) []string) []Gap {
	var out []Gap
	for _, e := range s.Profiles {
		for _, what := range of(e) {
			i := slices.IndexFunc(out, func(g Gap) bool { return g.What == what })
			if i < 0 {
				i, out = len(out), append(out, Gap{What: what})
			}
			out[i].Profiles = append(out[i].Profiles, e.Profile)
		}
	}
	slices.SortStableFunc(out, func(a, b Gap) int { return len(b.Profiles) - len(a.Profiles) })
	return out
}

// Lacking groups the profiles that lack the same, by what that is.
func (s Standing) Lacking() []Gap {
	var out []Gap
	for _, profile := range slices.Sorted(maps.Keys(s.Lacks)) {
		what := s.Lacks[profile].Lacking()
		i := slices.IndexFunc(out, func(g Gap) bool { return g.What == what })
		if i < 0 {
			i, out = len(out), append(out, Gap{What: what})
		}
		out[i].Profiles = append(out[i].Profiles, profile)
	}
	return out
}

// about says of each profile what a program in it has.
var about = map[string]string{
	"guarded": "your files and network, but nothing of yaya's",
	"server":  "its own state; files and hosts that you name",
	"command": "the workspace and package registries; reads your files, but no credentials",
	"check":   "the workspace, without a network; reads your files, but no credentials",
	"plugin":  "its own state, without a network",
	"browser": "like server, and the user namespaces of a browser's own sandbox",
}

// About says in a few words what a program in a profile has.
func About(profile string) string { return about[profile] }
