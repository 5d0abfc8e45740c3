package sandbox

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A back end that failed for a reason that may pass is tried again after a minute; one
// that works, or that the system refuses, is not.
func TestProbeAgain(t *testing.T) {
	for _, c := range []struct {
		name       string
		first      found
		after      time.Duration
		tries      int
		best, mean string
	}{
		{"it works", found{}, time.Hour, 1, Namespaces, Namespaces},
		{"no memory, at once", found{why: "cannot allocate memory"}, tryAgain - 1, 1, Landlock, Landlock},
		{"no memory, later", found{why: "cannot allocate memory"}, tryAgain, 2, Landlock, Namespaces},
		{"refused", found{why: "operation not permitted", final: true}, time.Hour, 1, Landlock, Landlock},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				p := &prober{about: func() Report { return Report{} }, ends: []*backEnd{
					{name: Namespaces, try: func() found {
						if tries++; tries == 1 {
							return c.first
						}
						return found{}
					}},
					{name: Landlock, try: func() found { return found{landlock: 7} }},
				}}
				if got := p.choice("auto").Best; got != c.best {
					t.Errorf("at first %s, want %s", got, c.best)
				}
				time.Sleep(c.after)
				if got := p.full(); got.Best != c.mean || tries != c.tries || got.Landlock != 7 {
					t.Errorf("later %s after %d tries with Landlock %d, want %s, %d, 7", got.Best, tries, got.Landlock, c.mean, c.tries)
				}
			})
		})
	}
}

// The first program waits for no back end that it does not use.
func TestProbeChoice(t *testing.T) {
	var tried []string
	p := &prober{about: func() Report { return Report{} }}
	for name, f := range map[string]found{Namespaces: {why: "refused", final: true, fix: "sudo fix"}, Bwrap: {hostProc: "masked"}, Landlock: {}} {
		p.ends = append(p.ends, &backEnd{name: name, try: func() found {
			tried = append(tried, name)
			return f
		}})
	}
	slices.SortFunc(p.ends, func(a, b *backEnd) int {
		return slices.Index(order, a.name) - slices.Index(order, b.name)
	})
	for _, c := range []struct {
		choice, best string
		tried        []string
	}{
		{"none", None, nil},
		{None, None, nil},
		{Bwrap, Bwrap, []string{Bwrap}},
		{"auto", Bwrap, []string{Bwrap, Namespaces}},
		{Landlock, Landlock, []string{Bwrap, Namespaces, Landlock}},
	} {
		if got := p.choice(c.choice).Best; got != c.best || !slices.Equal(tried, c.tried) {
			t.Errorf("choice(%q): %s after tries of %q; want %s, %q", c.choice, got, tried, c.best, c.tried)
		}
	}
	if p.known.Load() {
		t.Error("all is known after a choice")
	}
	if r := p.full(); r.Fix != "sudo fix" || r.Why != "refused" || r.HostProc != "masked" || len(r.Backends) != 4 || !p.known.Load() {
		t.Errorf("full report: %+v", r)
	}
}

var order = []string{Namespaces, Bwrap, Landlock}
