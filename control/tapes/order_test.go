package tapes_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	js "github.com/nats-io/nats.go/jetstream"

	"github.com/yaya-ai/yaya/control/tapes"
	"github.com/yaya-ai/yaya/internal/hosttest"
	"github.com/yaya-ai/yaya/internal/natstest"
)

// sentFiles returns the names of the files of which the stream of sessions has parts, in the order of these.
func (n *node) sentFiles() (names []string) {
	n.t.Helper()
	api, err := js.New(n.conn)
	if err != nil {
		n.t.Fatal(err)
	}
	s, err := api.Stream(n.t.Context(), "yaya_sessions")
	if err != nil {
		n.t.Fatal(err)
	}
	for seq := uint64(1); seq <= s.CachedInfo().State.LastSeq; seq++ {
		m, err := s.GetMsg(n.t.Context(), seq)
		if err != nil {
			n.t.Fatal(err)
		}
		var said struct{ File string }
		if err := json.Unmarshal([]byte(m.Header.Get("Yaya")), &said); err != nil {
			n.t.Fatal(err)
		}
		if said.File != "" {
			names = append(names, said.File)
		}
	}
	return names
}

// CL-04: with a message that is kept, other nodes have the files that came before it: its attachments, and
// with the first one how the session was made.
func TestFilesBeforeWhatNamesThem(t *testing.T) {
	south := start(t, natstest.Start(t), "south")
	south.holds("sess_a")
	for i := range 5 {
		// A named pipe holds up whoever opens it until somebody writes to it: meanwhile all the others are wanted.
		pipe := fmt.Sprint("pipe", i)
		hosttest.Pipe(t, filepath.Join(south.data.Name(), pipe))
		south.Grew("sess_a", tapes.File{Name: pipe})
		const tape = "tapes/a.jsonl"
		said := south.write("sess_a", tape, "gen1", "gen1 names them\n")
		for j := range 8 {
			south.write("sess_a", fmt.Sprintf("sessions/sess_a/attachments/%d-%d", i, j), "", "a picture")
		}
		w, err := os.OpenFile(filepath.Join(south.data.Name(), pipe), os.O_WRONLY, 0)
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		south.kept("sess_a", said)
		all := south.sentFiles()
		at := len(all) - 1
		for ; all[at] != tape; at-- {
		}
		named := slices.DeleteFunc(all[:at], func(name string) bool {
			return !strings.HasPrefix(name, fmt.Sprintf("sessions/sess_a/attachments/%d-", i))
		})
		if len(named) != 8 {
			t.Errorf("round %d: the message is copied behind %d of the files that it names, want all 8", i, len(named))
		}
	}
}

// A file that cannot be read does not keep the messages of its session from being acknowledged.
func TestUnreadableFileHoldsUpNoOther(t *testing.T) {
	south := start(t, natstest.Start(t), "south")
	south.holds("sess_a")
	if err := os.Symlink("/outside", filepath.Join(south.data.Name(), "broken")); err != nil {
		t.Fatal(err)
	}
	south.Grew("sess_a", tapes.File{Name: "broken"})
	south.kept("sess_a", south.write("sess_a", "tapes/a.jsonl", "gen1", "gen1 one\n"))
}
