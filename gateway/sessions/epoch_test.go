package sessions

import (
	"encoding/json"
	"testing"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// S-7: a record counts a tape once, although a request with an older snapshot has counted it under the epoch
// before its reset.
func TestARecordCountsOneEpoch(t *testing.T) {
	data, err := json.Marshal(event.TurnCompleted{TurnID: "turn_1"})
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(session.Note{Name: event.TurnWasCompleted.Name(), Data: data})
	if err != nil {
		t.Fatal(err)
	}
	r := record{Session: Session{Status: Active}}
	for _, epoch := range []string{"old", "new"} {
		for id := range int64(3) {
			e := session.Entry{ID: id + 1, Kind: session.KindEvent, Payload: payload, Meta: session.Meta{Turn: "turn_1"}}
			r.count(e, epoch, false, func(string, event.Usage) float64 { return 0 })
		}
	}
	if r.Usage.Turns != 3 || r.Counted != (session.Cursor{Epoch: "new", Seq: 3}) {
		t.Errorf("counted %d turns up to %+v, want 3 up to the third entry of the new epoch", r.Usage.Turns, r.Counted)
	}
}
