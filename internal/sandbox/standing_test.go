package sandbox

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// machine is a report of one with those back ends, the best first; a name with a "!"
// does not work.
func machine(backends ...string) Report {
	r := Report{Landlock: 7, Why: "the machine's", Fix: "sudo fix"}
	for _, name := range backends {
		name, broken := strings.CutSuffix(name, "!")
		s := State{Name: name, Works: !broken}
		if broken {
			s.Why = name + " is broken"
		} else if r.Best == "" {
			r.Best = name
		}
		r.Backends = append(r.Backends, s)
	}
	if !strings.HasSuffix(backends[0], "!") {
		r.Why, r.Fix = "", ""
	}
	return r
}

// Enforcement follows from the machine and the settings, and each weaker state names
// the one command that changes it.
func TestStanding(t *testing.T) {
	for _, c := range []struct {
		name    string
		on      Report
		set     Settings
		best    string
		lacks   []string // profiles, for a user that is not root
		summary string
		fix     string
	}{
		{"as it is", machine(Namespaces, Landlock, None), Settings{Mode: Prefer, Backend: "auto"}, Namespaces, nil, "namespaces: all that the profiles want is enforced", ""},
		{"a weaker machine", machine(Namespaces+"!", Landlock, None), Settings{Mode: Prefer, Backend: "auto"}, Landlock, []string{"browser", "check", "command", "server"}, "landlock, weaker than the profiles want: the network is off; only in part: ", "sudo fix"},
		{"a weaker machine, and all is required", machine(Namespaces+"!", Landlock, None), Settings{Mode: Require, Backend: "auto"}, Landlock, []string{"browser", "check", "command", "server"}, "do not start", "sudo fix"},
		{"a machine without", machine(Namespaces+"!", Landlock+"!", None), Settings{Mode: Prefer, Backend: "auto"}, None, Profiles(), "off: nothing is enforced", "sudo fix"},
		{"switched off", machine(Namespaces, Landlock, None), Settings{Mode: Without, Backend: "auto"}, None, Profiles(), "(the setting sandbox.mode is off)", "yaya config set sandbox.mode prefer"},
		{"switched off on a weaker machine", machine(Namespaces+"!", Landlock, None), Settings{Mode: Without, Backend: "auto"}, None, Profiles(), "(the setting sandbox.mode is off)", "yaya config set sandbox.mode prefer"},
		{"switched off by the environment", machine(Namespaces, Landlock, None), Settings{Mode: Without, Backend: "auto", ModeFrom: "YAYA_SANDBOX__MODE"}, None, Profiles(), "sandbox.mode is off", "unset YAYA_SANDBOX__MODE (and start yaya again)"},
		{"the back end off", machine(Namespaces, Landlock, None), Settings{Mode: Prefer, Backend: None}, None, Profiles(), "(the setting sandbox.backend is off, and namespaces works)", "yaya config set sandbox.backend auto"},
		{"a weaker back end", machine(Namespaces, Landlock, None), Settings{Mode: Prefer, Backend: Landlock}, Landlock, []string{"browser", "check", "command", "server"}, "the setting sandbox.backend is landlock", "yaya config set sandbox.backend auto"},
		{"a back end that does not work", machine(Namespaces+"!", Landlock, None), Settings{Mode: Prefer, Backend: Namespaces}, "", nil, `no program starts in a sandbox: the sandbox back end "namespaces" does not work here: namespaces is broken`, "yaya config set sandbox.backend auto"},
		{"an unknown mode", machine(Namespaces, None), Settings{Mode: "requires", Backend: "auto"}, "", nil, `no program starts in a sandbox: the setting sandbox.mode is "requires"`, "yaya config set sandbox.mode prefer"},
		{"no mode", machine(Namespaces, None), Settings{Backend: "auto", ModeFrom: "YAYA_SANDBOX__MODE"}, "", nil, `no program starts in a sandbox: the setting sandbox.mode is ""`, "unset YAYA_SANDBOX__MODE (and start yaya again)"},
		{"a back end of elsewhere", machine(Namespaces, None), Settings{Mode: Prefer, Backend: "seatbelt"}, "", nil, `there is no sandbox back end "seatbelt" here`, "yaya config set sandbox.backend auto"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := standing(c.on, c.set)
			if s.Best != c.best || s.Fix != c.fix || !strings.Contains(s.Summary(), c.summary) && os.Geteuid() != 0 {
				t.Errorf("got %q, %q, %q; want %q, %q, %q", s.Best, s.Fix, s.Summary(), c.best, c.fix, c.summary)
			}
			for _, profile := range Profiles() {
				lacks := s.Lacks[profile]
				if c.best != None && os.Geteuid() == 0 {
					lacks &^= NeedTasks // the kernel exempts root
				}
				if got, want := lacks != 0, slices.Contains(c.lacks, profile); got != want {
					t.Errorf("%s lacks %q, want some: %v", profile, lacks, want)
				}
			}
			if n := len(s.Profiles); s.Refused == "" && n != len(Profiles()) || s.Refused != "" && n != 0 {
				t.Errorf("got %d profiles, refused %q", n, s.Refused)
			}
			if s.Best == None && len(s.Gaps()) != 1 {
				t.Errorf("off has the gaps %v, want one that all profiles share", s.Gaps())
			}
			if lacking := s.Lacking(); s.Best == Landlock && (len(lacking) == 0 || !strings.Contains(lacking[0].What, "the network is off") || lacking[0].Profiles[0] != "browser") {
				t.Errorf("lacking: %v, want the network first", lacking)
			}
		})
	}
}

// The headline says no more than what follows it: the review of a machine without a
// control group read "all is enforced" above "not enforced here, or in part: memory".
func TestHeadline(t *testing.T) {
	for _, c := range []struct {
		name    string
		group   string
		backend string
		want    string
	}{
		{"with a control group", "", Namespaces, "namespaces: all that the profiles want is enforced"},
		{"without", "the system has none", Namespaces, "namespaces: all that the profiles want is enforced, but memory only in part"},
		{"landlock", "", Landlock, "landlock, weaker than the profiles want: the network is off; only in part: hidden files, other processes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.group != "" && os.Geteuid() == 0 {
				t.Skip("the kernel exempts root from the number of processes")
			}
			on := machine(c.backend, None)
			on.Group = c.group
			s := standing(on, Settings{Mode: Prefer, Backend: "auto"})
			if got := s.Summary(); got != c.want {
				t.Errorf("Summary() = %q, want %q", got, c.want)
			}
			for _, e := range s.Profiles {
				if whole := s.Lacks[e.Profile] == 0 && e.Partly == 0; whole != (len(e.Missing) == 0) {
					t.Errorf("%s: lacks %q, in part %q, and says %q", e.Profile, s.Lacks[e.Profile], e.Partly, e.Missing)
				}
			}
		})
	}
}

// Every profile describes the rights of its programs.
func TestAbout(t *testing.T) {
	for _, name := range Profiles() {
		if About(name) == "" {
			t.Errorf("the profile %s says nothing", name)
		}
	}
}

// Denials are counted by profile, and also reported to the policy.
func TestDenials(t *testing.T) {
	s := &Sandboxes{Settings: func() Settings { return Settings{Mode: Prefer, Backend: "auto"} }}
	var told []string
	for _, profile := range []string{"command", "command", "server"} {
		p, err := s.Policy(profile, "")
		if err != nil {
			t.Fatal(err)
		}
		if profile == "command" {
			p.Net.Denied = func(d Denial) { told = append(told, d.Host) }
		}
		run, err := s.Enter(p)
		if err != nil {
			t.Fatal(err)
		}
		run.policy.Net.Denied(Denial{Host: "a.example"})
		run.Ended()
	}
	if got := s.Denials(); len(got) != 2 || got["command"] != 2 || got["server"] != 1 {
		t.Errorf("denials: %v, want 2 of command and 1 of server", got)
	}
	if len(told) != 2 {
		t.Errorf("the policies got %q, want 2 hosts", told)
	}
}

// An unknown mode starts nothing, in a sandbox or outside one.
func TestUnknownMode(t *testing.T) {
	for _, c := range []struct {
		mode           Mode
		enter, outside bool
	}{{Prefer, true, true}, {Without, true, true}, {Require, true, false}, {"", false, false}, {"Require", false, false}, {"of", false, false}} {
		set := Settings{Mode: c.mode, Backend: None}
		if err := set.Outside(); (err == nil) != c.outside {
			t.Errorf("mode %q: outside a sandbox: %v, want it allowed: %v", c.mode, err, c.outside)
		}
		s := &Sandboxes{Settings: func() Settings { return set }}
		run, err := s.Enter(Policy{})
		if err == nil {
			run.Ended()
		}
		_, lacks := errors.AsType[*RefusedError](err) // there is such a mode, and it cannot be had
		if refused := err != nil && !lacks && strings.Contains(err.Error(), "sandbox.mode"); refused == c.enter {
			t.Errorf("mode %q: got %v, want a refusal for the mode: %v", c.mode, err, !c.enter)
		}
	}
}
