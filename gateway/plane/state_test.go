package plane

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/control"
)

// OP-30: a restored plane has the state that the same entries lead to, wherever they are cut
// in two.
func TestStateIsWhatTheEntriesLedTo(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 30))
	var entries []control.Entry
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range 400 {
		id, k := fmt.Sprint("a", r.IntN(20)), fmt.Sprint("k", r.IntN(4))
		event, target, payload := evRegistered, id, any(registered{k, "chat", map[string]any{"n": i}})
		switch r.IntN(8) {
		case 0:
			event, payload = evKilled, killed{"enough", false}
		case 1:
			event, payload = evUpdated, updated{"running", map[string]any{"turn_id": "t"}} // of an earlier yaya
		case 2:
			event, target, payload = evAttached, k, attached{"phone"}
		case 3:
			event, target, payload = evCapabilities, k, capabilities{[]string{"sum", fmt.Sprint(i)}}
		case 4:
			event, target, payload = evPromoted, "sum", promoted{"sum", 0.9, k}
		case 5:
			event, target, payload = evDemoted, "sum", demoted{"slow"}
		case 6:
			event, target, payload = evLeader, k, leader{k, 1}
		}
		raw, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, control.Entry{Index: int64(i + 1), Term: 1, Time: at.Add(time.Duration(i) * time.Second), Event: event, Actor: k, Target: target, Payload: raw})
	}
	whole := New(Config{KernelID: "k0"})
	states := []json.RawMessage{save(t, whole)}
	for _, e := range entries {
		if err := whole.Apply(e); err != nil {
			t.Fatal(err)
		}
		states = append(states, save(t, whole))
	}
	for cut := 0; cut <= len(entries); cut += 7 {
		p := New(Config{KernelID: "k0"})
		if err := p.Restore(states[cut]); err != nil {
			t.Fatal(err)
		}
		for _, e := range entries[cut:] {
			if err := p.Apply(e); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := string(save(t, p)), string(states[len(entries)]); got != want {
			t.Fatalf("restored after %d entries, it leads to\n%s\nwant\n%s", cut, got, want)
		}
	}
}

// W-31, OP-30: a saved state has the numbers of entries, as those of earlier versions do.
func TestStateHasTheNumbersOfEntries(t *testing.T) {
	p := New(Config{KernelID: "k0"})
	if err := p.Apply(control.Entry{Index: 7, Event: evRegistered, Target: "a", Payload: json.RawMessage(`{"kernel_id":"k0","skill":"chat"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.update(t.Context(), "k0", "a", "running", nil); err != nil {
		t.Fatal(err)
	}
	if all, at := p.Agents(); at != 7*perEntry+1 || all[0].Index != at {
		t.Errorf("Agents() = %+v, %d, want the index %d", all, at, 7*perEntry+1)
	}
	state := save(t, p)
	var s savedState
	if err := json.Unmarshal(state, &s); err != nil || len(s.Agents) != 1 || s.Agents[0].Index != 7 {
		t.Errorf("got %s, %v, want one agent with the index 7", state, err)
	}
	again := New(Config{KernelID: "k0"})
	if err := again.Restore(state); err != nil {
		t.Fatal(err)
	}
	if all, _ := again.Agents(); len(all) != 1 || all[0].Index != 7*perEntry {
		t.Errorf("Agents() = %+v after Restore, want one with the index %d", all, 7*perEntry)
	}
}

func save(t *testing.T, p *Plane) json.RawMessage {
	t.Helper()
	state, err := p.Save()
	if err != nil {
		t.Fatal(err)
	}
	return state
}
