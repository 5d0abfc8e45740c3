package session

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
)

// Readers of a new entry get the note that they would parse of its text, whatever is in it.
func TestNoteOfANewEntry(t *testing.T) {
	m, _ := newManager(t, t.TempDir())
	s, err := m.Open("s", "")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]any{
		"x.a.text": "<b> & \u2028 \xff \"}", "x.a.none": nil, "x.a.list": []int{1, 2}, "x.a.many": map[string]any{"data": map[string]string{"name": "x"}},
		`x.<"name">`: true, "x.a.raw": json.RawMessage(`{ "a" : [ 1 ] }`),
	} {
		if _, err := s.Note(event.Event{Kind: name, SessionID: "s", ID: name, Time: time.Now(), Source: "session"}, data); err != nil {
			t.Fatal(err)
		}
		checkNote(t, s.latest, name)
	}
	end := event.Event{Kind: event.TurnWasCompleted.Name(), SessionID: "s", ID: "end", Time: time.Now(), Source: event.KernelSource, Payload: event.TurnCompleted{TurnID: "t", Steps: 1}}
	if _, err := m.Record(&end); err != nil {
		t.Fatal(err)
	}
	checkNote(t, s.latest, event.TurnWasCompleted.Name())
	if s.latest.note == nil {
		t.Error("the note of an event is not kept with its entry, want that it is")
	}
	if _, err := s.Say(Message{Role: "user", Content: `{"name":"x","data":1}`}, "", ""); err != nil {
		t.Fatal(err)
	}
	if n, ok := s.latest.Note(); ok {
		t.Errorf("Note() of a message = %+v, want none", n)
	}
}

func checkNote(t *testing.T, e Entry, name string) {
	t.Helper()
	var want Note
	if err := json.Unmarshal(e.Payload, &want); err != nil {
		t.Fatal(err)
	}
	if got, ok := e.Note(); !ok || !reflect.DeepEqual(got, want) || got.Name != name {
		t.Errorf("Note() = %s %s, %v; want %s %s", got.Name, got.Data, ok, want.Name, want.Data)
	}
}
