package proc

import (
	"io"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// The processor time of a process includes that of its descendants, even when it does
// nothing itself.
func TestWorked(t *testing.T) {
	var m Manager
	t.Cleanup(func() { m.Close(t.Context()) })
	for name, tc := range map[string]struct {
		script string
		works  bool
	}{
		"computes itself":       {`echo; while :; do :; done`, true},
		"a grandchild computes": {`sh -c 'echo; while :; do :; done' & wait`, true},
		"a child has computed":  {`sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; echo; read -r _`, true},
		"waits":                 {`echo; read -r _`, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := m.Start(Spec{Path: "sh", Args: []string{"-c", tc.script}, Env: env})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(p.Stdout, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			if tc.works {
				eventually.True(t, "it has worked for 50 ms", func() bool { return p.Worked() >= 50*time.Millisecond })
			} else if got := p.Worked(); got >= 50*time.Millisecond {
				t.Errorf("worked %v, want next to nothing", got)
			}
			p.Kill()
			<-p.Done()
			if got := p.Worked(); got != 0 {
				t.Errorf("worked %v after its end, want 0", got)
			}
		})
	}
}
