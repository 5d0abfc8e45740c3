package sessions

import (
	"encoding/json"
	"testing"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// A kernel's note about a session counts and is shown. A plugin's note of the same name is ignored.
func TestNotesOfPluginsAreNotTheSessions(t *testing.T) {
	free := func(string, event.Usage) float64 { return 0 }
	for name, data := range map[string]string{
		noteClosed:        `{}`,
		session.NoteMode:  `{"mode":"plan"}`,
		session.NoteModel: `{"model":"other"}`,
		session.NoteQueue: `{"prompts":[{"id":"p","text":"t"}]}`,
	} {
		payload, err := json.Marshal(session.Note{Name: name, Data: json.RawMessage(data)})
		if err != nil {
			t.Fatal(err)
		}
		for source, want := range map[string]bool{"": true, "session": false} {
			e := session.Entry{ID: 7, Kind: session.KindEvent, Payload: payload, Meta: session.Meta{Source: source}}
			if ev, ok := project("s", "e", e); ok != want {
				t.Errorf("%s of %q is shown: %v (%+v), want %v", name, source, ok, ev, want)
			}
			r := record{Session: Session{Status: Active, Mode: session.Work, Model: "mine"}}
			changed, _ := r.count(e, "e", false, free)
			if moved := r.Status != Active || r.Mode != session.Work || r.Model != "mine"; name != session.NoteQueue && (changed != want || moved != want) {
				t.Errorf("%s of %q changes the record: %v (%+v), want %v", name, source, changed, r.Session, want)
			}
		}
	}
}
