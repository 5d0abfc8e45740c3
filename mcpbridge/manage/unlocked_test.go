package manage_test

import (
	"encoding/json"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// curious asks the manager something whenever it is asked something itself.
type curious struct {
	*bridge
	ask func()
}

func (c *curious) Runs(s servers.Server) bool {
	c.ask()
	return c.bridge.Runs(s)
}

// The manager looks things up in files and among secrets, which may take a while, without
// its mutex: others get answers meanwhile.
func TestLookingUpLocksNothing(t *testing.T) {
	var r *rig
	var asked atomic.Int32
	ask := func() {
		if r == nil { // it is being put together
			return
		}
		asked.Add(1)
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			r.Configured()
		}()
		eventually.True(t, "the manager answers while it waits for an answer", func() bool {
			select {
			case <-answered:
				return true
			default:
				return false
			}
		})
	}
	r = start(t, one, "", func(c *manage.Config, r *rig) {
		c.Bridge = &curious{r.bridge, ask}
		c.Secret = func(string) (string, error) { ask(); return "x", nil }
	})
	const secret = `{"command":"cat","env":{"TOKEN":"${secret:token}"}}`
	r.write(filepath.Join(r.home, ".cursor", "mcp.json"), `{"mcpServers":{"theirs":`+secret+`}}`)
	var client string
	for _, i := range r.Importable() {
		client = i.Client
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"Prepare()", func() error { _, err := r.Prepare("two", json.RawMessage(secret), ""); return err }},
		{"Import()", func() error { _, err := r.Import(client); return err }},
		{"Reload()", func() error {
			r.write(r.file, `{"mcpServers":{`+one+`,"two":`+secret+`}}`)
			_, err := r.Reload(t.Context(), nil, func([]manage.Change) error { return nil })
			return err
		}},
	} {
		asked.Store(0)
		if err := step.do(); err != nil || asked.Load() == 0 {
			t.Errorf("%s = %v, and looked something up %d times, want no error and at least once", step.name, err, asked.Load())
		}
	}
}

// A change that is made while another one is prepared is not lost: the later one does not
// know it, and is refused.
func TestChangedWhileAnotherIsPrepared(t *testing.T) {
	var meanwhile func() // is called once, when a secret is looked up
	r := start(t, one, "", func(c *manage.Config, _ *rig) {
		c.Secret = func(string) (string, error) {
			if f := meanwhile; f != nil {
				meanwhile = nil
				f()
			}
			return "x", nil
		}
	})
	for _, name := range []string{"one", "two"} {
		first, err := r.Prepare(name, json.RawMessage(`{"command":"cat","args":["first"]}`), "")
		if err != nil {
			t.Fatal(err)
		}
		meanwhile = func() {
			if err := first.Apply(t.Context()); err != nil {
				t.Errorf("%s: the first change: %v", name, err)
			}
		}
		second, err := r.Prepare(name, json.RawMessage(`{"command":"cat","args":["${secret:x}"]}`), "")
		if err != nil || meanwhile != nil {
			t.Fatalf("%s: the second change: %v, and the first is made: %v", name, err, meanwhile == nil)
		}
		wantError(t, name+": the second change", second.Apply(t.Context()), manage.ErrStale, "was changed since")
	}
}
