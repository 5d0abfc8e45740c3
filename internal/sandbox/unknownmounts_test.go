package sandbox

import (
	"errors"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/mounts"
)

// Where the mounts are not known, nobody knows which other paths lead to what is hidden: the
// report says so, and a policy that requires hidden files does not start.
func TestUnknownMounts(t *testing.T) {
	was := lookAtMounts
	t.Cleanup(func() { lookAtMounts = was })
	lookAtMounts = func() (*mounts.Table, error) { return nil, errors.New("the table of mounts is gone") }
	for _, backend := range Backends() {
		t.Run(backend, func(t *testing.T) {
			b := &Box{Backend: backend}
			if _, err := b.choose(Probe()); err != nil {
				t.Skip(err)
			}
			p := profile(t, "check")
			run, err := b.Enter(p)
			if err != nil {
				t.Fatal(err)
			}
			run.Ended()
			said := strings.Join(run.Enforced.Missing, "; ")
			if run.Enforced.Has&(NeedHidden|NeedProtect) != 0 || strings.Contains(said, "the table of mounts is gone") != (backend != None) {
				t.Errorf("enforces %s, and misses %q; want no hidden files, and the reason", run.Enforced.Has, said)
			}
			p.Require = NeedHidden
			if _, err := b.Enter(p); err == nil || !strings.Contains(err.Error(), "hidden files") {
				t.Errorf("Enter = %v, want a refusal because of hidden files", err)
			}
		})
	}
	boxes := &Sandboxes{Settings: func() Settings { return Settings{Mode: Prefer, Backend: "auto"} }}
	st := boxes.Standing()
	if st.Best == None {
		t.Skip("there is no back end here")
	}
	if st.Lacks["guarded"]&NeedHidden == 0 || !strings.Contains(st.Summary(), "hidden files") {
		t.Errorf("the report lacks %v, and says %q; want hidden files", st.Lacks, st.Summary())
	}
	p := profile(t, "guarded")
	if e, err := boxes.Here(p); err != nil || e.Has&NeedHidden != 0 {
		t.Errorf("Here = %s, %v; want no hidden files", e.Has, err)
	}
}
