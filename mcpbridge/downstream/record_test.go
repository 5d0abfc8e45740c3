package downstream

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/kernel/tool"
)

// The record for a client that may come back is bounded, in streams, events and bytes.
// The newest events stay, and a replay has no gap after its start.
func TestRecordsAreBounded(t *testing.T) {
	c := newClient(tool.Owner, "s", &profile{})
	for range 2 * maxRecords {
		c.newRecord(nil)
	}
	if len(c.records) != maxRecords {
		t.Errorf("%d streams are kept", len(c.records))
	}
	if _, _, ok := c.resumed(fmt.Sprintf("r%d-0", maxRecords)); ok {
		t.Error("the oldest can be resumed")
	}
	if _, _, ok := c.resumed(fmt.Sprintf("r%d-0", maxRecords+1)); !ok {
		t.Error("one that is kept cannot be resumed")
	}
	for name, size := range map[string]int{"events": 10, "bytes": 4 << 10, "one event": 2 * maxRecorded} {
		r := c.newRecord(nil)
		var last string
		for i := range 2 * maxRecordedN {
			last = fmt.Sprintf("%d:%s", i, strings.Repeat("x", size))
			if err := r.send([]byte(last)); err != nil {
				t.Fatal(err)
			}
			if size > maxRecorded && i == 3 {
				break
			}
		}
		total := 0
		for _, ev := range r.events {
			total += len(ev)
		}
		if total != r.size || len(r.events) > maxRecordedN || (total > maxRecorded && len(r.events) > 1) {
			t.Errorf("%s: %d events of %d bytes are kept, %d counted", name, len(r.events), total, r.size)
		}
		w := httptest.NewRecorder()
		if err := r.replay(newConn(w), r.first); err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(w.Body.Bytes(), []byte("id: ")); n != len(r.events)-1 || (n > 0 && !strings.Contains(w.Body.String(), last)) {
			t.Errorf("%s: %d of %d events are replayed after the first", name, n, len(r.events))
		}
	}
}
