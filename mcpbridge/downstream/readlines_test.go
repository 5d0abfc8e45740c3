package downstream

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
)

// A connection has a bound on unanswered requests, and tells its client of it. The
// client's answers to questions come through nevertheless.
func TestLargeLinesOfAConnectionAreBounded(t *testing.T) {
	pad := strings.Repeat("x", 2<<20)
	request, response := `{"jsonrpc":"2.0","id":7,"method":"m","params":{"pad":"`+pad+`"}}`, `{"jsonrpc":"2.0","id":7,"result":{"pad":"`+pad+`"}}`
	for name, tc := range map[string]struct {
		held  int64
		line  string
		taken bool
	}{
		"the first":                   {0, request, true},
		"there is room":               {maxLarge - 3<<20, request, true},
		"there is none":               {maxLarge - 1<<20, request, false},
		"an answer":                   {maxLarge, response, true},
		"an answer, and far too many": {2*maxLarge - 1<<20, response, false},
	} {
		held := new(atomic.Int64)
		held.Store(tc.held)
		var got Incoming
		if err := ReadMessages(strings.NewReader(tc.line+"\n"), MaxBody, func(m Incoming) { got = m }); err != nil {
			t.Fatal(err)
		}
		got.Release()
		got.large = nil
		got = got.counted(held)
		if tc.taken != (got.Err == nil) || (!tc.taken && (!errors.Is(got.Err, errManyLarge) || string(got.ID) != "7" || !strings.Contains(got.Err.Error(), "256 MiB") || !strings.Contains(got.Err.Error(), "servers.max_message_bytes"))) {
			t.Errorf("%s: %v for id %s, want taken %v", name, got.Err, got.ID, tc.taken)
		}
		got.Release()
		got.Release()
		if n := held.Load(); n != tc.held {
			t.Errorf("%s: %d bytes are held in the end, want %d", name, n, tc.held)
		}
	}
}
