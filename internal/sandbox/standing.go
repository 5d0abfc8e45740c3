package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Standing describes what sandboxes enforce, given the settings and the machine.
type Standing struct {
	// Best of Report is the back end in use, "" if none works; Profiles describes its
	// enforcement.
	Report
	Mode    Mode
	Setting string // the back end that the settings name, or "auto"
	// Refused is the reason why no program starts in a sandbox; "" if they do.
	Refused string
	// Lacks are the limits of the profiles that are not enforced, by profile, without
	// complete ones.
	Lacks map[string]Need
	// Prefer is the command that makes the mode [Prefer].
	Prefer string
}

// Standing returns what is enforced with the present settings. The first call
// probes (see [Probe]).
func (s *Sandboxes) Standing() Standing { return standing(Probe(), s.Settings()) }

func standing(r Report, set Settings) Standing {
	st := Standing{Report: r, Mode: set.Mode, Setting: set.Backend, Lacks: map[string]Need{}, Prefer: set.SetMode(Prefer)}
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

// SetMode returns the command that changes the mode. An environment variable, if set,
// overrides the command's setting.
func (s Settings) SetMode(to Mode) string {
	if s.ModeFrom != "" {
		return "start yaya again with " + s.ModeFrom + "=" + string(to)
	}
	return "yaya config set sandbox.mode " + string(to)
}

// reset returns the command that changes a setting. An environment variable, if set,
// overrides the command's setting.
func reset(key, value, from string) string {
	if from != "" {
		return "unset " + from + " (and start yaya again)"
	}
	return "yaya config set " + key + " " + value
}

// Summary returns the state in a sentence.
func (s Standing) Summary() string {
	why := ""
	if s.Why != "" {
		why = " (" + s.Why + ")"
	}
	way := s.lacked().Way()
	if way != "" {
		way = " (" + way + ")"
	}
	switch {
	case s.Refused != "":
		return "no program starts in a sandbox: " + s.Refused
	case s.Best == None:
		return "off: nothing is enforced, programs run with all rights of your user" + why
	case len(s.Lacks) == 0:
		return s.Best + ": all that the profiles want is enforced" + s.inPart(", but %s only in part") + why
	case s.Mode == Require:
		return fmt.Sprintf("%s: programs in the profiles %s do not start: %s%s%s", s.Best, strings.Join(slices.Sorted(maps.Keys(s.Lacks)), ", "), s.lacked().Lacking(), way, why)
	default:
		return fmt.Sprintf("%s, weaker than the profiles want: %s%s%s", s.Best, s.lacked().Lacking(), s.inPart("; only in part: %s"), why)
	}
}

// inPart lists the limits that are enforced in part.
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

// lacked returns the limits that any profile lacks.
func (s Standing) lacked() Need {
	var all Need
	for _, n := range s.Lacks {
		all |= n
	}
	return all
}

// Gap describes, in a sentence for a person, a limit that is not or only partly enforced,
// or a feature that does not work.
type Gap struct {
	What     string
	Profiles []string
}

// Gaps lists the limits that are not enforced, those that most profiles lack first.
func (s Standing) Gaps() []Gap {
	return s.gather(func(e Enforced) []string { return e.Missing })
}

// Breaks lists the features that profiles allow but that do not work here, those of most
// profiles first.
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

// Lacking groups profiles by the limits that they lack.
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

// about describes the rights of programs in each profile.
var about = map[string]string{
	"guarded": "your files and network, but nothing of yaya's",
	"server":  "its own state; files and hosts that you name",
	"command": "the workspace and package registries; reads your files, but no credentials",
	"check":   "the workspace, without a network; reads your files, but no credentials",
	"plugin":  "its own state, without a network",
	"browser": "like server, and the user namespaces of a browser's own sandbox",
}

// About describes the rights of programs in a profile in a few words.
func About(profile string) string { return about[profile] }
