package jsonrpc

import (
	"strings"
	"testing"
)

// FID-4: the call that a message belongs to is found although the message is too
// large to be held.
func TestGlimpse(t *testing.T) {
	const n = 1 << 10
	text := strings.Repeat(`x\"},"id":9}`, n)
	for _, tc := range []struct {
		name, in, id string
		call         bool
	}{
		{"the id first", `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"` + text + `"}]}}`, "7", false},
		{"the id last, as the TypeScript SDK writes it", `{"result":{"content":[{"type":"text","text":"` + text + `"}]},"jsonrpc":"2.0","id":7}`, "7", false},
		{"the id last, and a string", `{"result":{"x":"` + text + `"} , "id" : "a\"b" , "jsonrpc":"2.0" } `, `"a\"b"`, false},
		{"a request", `{"jsonrpc":"2.0","id":7,"method":"m","params":{"x":"` + text + `"}}`, "7", true},
		{"a request, said last", `{"params":{"x":"` + text + `"},"method":"m","id":7}`, "7", true},
		{"a notification", `{"jsonrpc":"2.0","method":"m","params":{"x":"` + text + `"}}`, "", true},
		{"an id in the middle", `{"result":"` + text + `","id":7,"y":["` + text + `"]}`, "", false},
		{"not JSON", text, "", false},
		{"an id that is an object", `{"id":{},"result":"` + text + `"}`, "", false},
	} {
		id, call := Glimpse([]byte(tc.in[:n]), []byte(tc.in[len(tc.in)-n:]))
		if string(id) != tc.id || call != tc.call {
			t.Errorf("%s: Glimpse = %q, %v, want %q, %v", tc.name, id, call, tc.id, tc.call)
		}
	}
}

// The id in the error for an unreadable message is that of a request, and JSON.
func TestWaits(t *testing.T) {
	for _, tc := range []struct{ name, in, id string }{
		{"a bad string after the id", "{\"id\":7,\"method\":\"m\",\"params\":{\"x\":\"\xff\"}}", "7"},
		{"a bad string before the id", "{\"params\":{\"x\":\"\xff\"},\"method\":\"m\",\"id\":7}", "7"},
		{"cut off", `{"jsonrpc":"2.0","id":"x","method":"m","params":{`, `"x"`},
		{"large", `{"id":7,"method":"m","params":{"x":"` + strings.Repeat("y", 10<<10) + `}`, "7"},
		{"an answer", "{\"id\":7,\"result\":{\"x\":\"\xff\"}}", ""},
		{"an id that is not UTF-8", "{\"method\":\"m\",\"params\":{,\"id\":\"\xff\"}", ""},
		{"an id that is not a number", `{"method":"m","params":{,"id":-e}`, ""},
		{"an array", `[{"id":7,"method":"m"`, ""},
		{"nothing", "", ""},
	} {
		if got := string(Waits([]byte(tc.in))); got != tc.id {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.id)
		}
	}
}

// On any input, a glimpse of a complete message finds no other id than parsing it
// does, and it ends.
func FuzzGlimpse(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":7,"result":{"a":"b"}}`), 20, 20)
	f.Add([]byte(`{"result":{"a":"\\\""},"jsonrpc":"2.0","id":"x"}`), 3, 30)
	f.Fuzz(func(t *testing.T, data []byte, head, tail int) {
		n := len(data)
		head, tail = min(max(head, 0), n), min(max(tail, 0), n)
		Glimpse(data[:head], data[n-tail:])
		if id := Waits(data); id != nil && Check(id) != nil {
			t.Fatalf("Waits = %q, want JSON", id)
		}
		var m Message
		if m.Parse(data) != nil {
			return
		}
		if id, _ := Glimpse(data[:head], data[n-tail:]); id != nil && string(id) != string(m.ID) && n == tail {
			t.Fatalf("Glimpse = %q, want %q", id, m.ID)
		}
	})
}
