package sessions_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// REL-6, OP-20: a damaged session answers 409 with the code damaged and the command that
// mends it, whatever is asked of it; other sessions are not harmed.
func TestDamagedSession(t *testing.T) {
	for name, spoil := range map[string]func(data []byte) []byte{
		"a flipped bit":                    func(d []byte) []byte { d[len(d)/2] ^= 1; return d },
		"a flipped bit in the first entry": func(d []byte) []byte { d[3] ^= 1; return d },
		"another id in the first entry":    func(d []byte) []byte { return bytes.Replace(d, []byte("sess_"), []byte("sesz_"), 1) },
		"emptied":                          func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			id := w.create()
			w.say(id, "hello")
			w.idle(id)
			tapes, err := filepath.Glob(filepath.Join(w.dir, "tapes", "*.jsonl"))
			if err != nil || len(tapes) != 1 {
				t.Fatalf("the tapes are %v, %v, want one", tapes, err)
			}
			other := w.create()
			w.stop()
			data, err := os.ReadFile(tapes[0])
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(tapes[0], spoil(data), 0o600); err != nil {
				t.Fatal(err)
			}
			w.lenient = true
			w.start("")
			for _, r := range [][2]string{
				{"GET", ""}, {"GET", "/snapshot"}, {"GET", "/events"}, {"POST", "/fork"}, {"POST", "/reset"}, {"POST", "/archive"}, {"POST", "/close"},
			} {
				status, out := w.do(r[0], "/v1/sessions/"+id+r[1], "")
				e, _ := out["error"].(map[string]any)
				if message, _ := e["message"].(string); status != 409 || e["code"] != "damaged" || !strings.Contains(message, "yaya repair --session "+id) {
					t.Errorf("%s %s = %d %v, want 409 damaged with the command", r[0], r[1], status, out)
				}
			}
			w.refused("POST", "/v1/sessions/"+id+"/messages", `{"role":"user","parts":[{"type":"text","text":"x"}]}`, 409, "damaged")
			w.say(other, "hello")
			w.idle(other)
		})
	}
}
