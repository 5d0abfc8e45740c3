package main

import (
	"os"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// A data directory that others can reach is taken away from them: the daemon says so in its
// log, and starts; a command does it as well.
func TestDataDirectoryIsMadePrivate(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	widen := func() {
		t.Helper()
		for _, name := range []string{"", "control"} {
			if err := os.MkdirAll(b.file(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(b.file(name), 0o777); err != nil {
				t.Fatal(err)
			}
		}
	}
	private := func(when string) {
		t.Helper()
		for _, name := range []string{"", "control"} {
			if st, err := os.Stat(b.file(name)); err != nil || st.Mode().Perm() != 0o700 {
				t.Errorf("%s: %q of the data directory has mode %v, %v, want 0700", when, name, st.Mode(), err)
			}
		}
	}
	widen()
	b.must("token", "create", "one")
	private("after a command")
	widen()
	p := b.daemon("serve", "--listen", b.addr, "--no-open")
	eventually.True(t, "yaya serves", func() bool { return strings.Contains(p.said.String(), "MCP endpoint") })
	private("in the daemon")
	for _, want := range []string{b.file() + " had mode 0777: yaya has taken the rights of others away", "others could write in the data directory " + b.file() + " until now: yaya verify", b.file("control") + " had mode 0777"} {
		if !strings.Contains(p.said.String(), want) {
			t.Errorf("the log lacks %q", want)
		}
	}
}
