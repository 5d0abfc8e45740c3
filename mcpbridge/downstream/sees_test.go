package downstream

import (
	"testing"

	"github.com/yaya-ai/yaya/kernel/tool"
)

// Each message to a stream asks whether its reader sees the server: that is looked up
// once for each configuration, and is true of a new one at once.
func TestSeesIsLookedUpOnce(t *testing.T) {
	of := func(server string) map[string]Profile {
		return map[string]Profile{"p": {Principal: []string{"device:x"}, Servers: []string{server}}}
	}
	known := of("a")
	s := New(Config{Registry: new(tool.Registry), Profiles: func() (map[string]Profile, error) { return known, nil }})
	defer s.Close()
	who := tool.Caller{Principal: "device:x"}
	p, err := s.profile("p", who)
	if err != nil {
		t.Fatal(err)
	}
	st := s.newStream(nil, who, p)
	see := func(a, b bool) {
		t.Helper()
		if gotA, gotB := st.sees("a"), st.sees("b"); gotA != a || gotB != b {
			t.Errorf("sees a: %v, b: %v, want %v, %v", gotA, gotB, a, b)
		}
	}
	see(true, false)
	if n := testing.AllocsPerRun(100, func() { st.sees("a") }); n != 0 {
		t.Errorf("%v allocations to look a profile up again, want 0: it is kept", n)
	}
	known = of("b")
	see(false, true)
	known = map[string]Profile{}
	see(false, false)
	known = of("a")
	see(true, false)
}
