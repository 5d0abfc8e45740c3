package downstream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/intake"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// batchCases are batches and the answers that a client gets; the order of the
// answers does not matter.
var batchCases = []struct {
	name, version, in string
	status            int
	want              []string // the answers, or the one message
}{
	{"requests and a notification", "2025-03-26", `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"srv__t"}}]`, 200, []string{`{"jsonrpc":"2.0","id":"b","result":{"content":[]}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`}},
	{"one request is answered by an array", "2025-03-26", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, 200, []string{`{"jsonrpc":"2.0","id":1,"result":{}}`}},
	{"notifications only", "2025-03-26", `[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":77,"result":{}}]`, 202, nil},
	{"initialize", "2025-03-26", `[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}]`, 200, []string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"initialize cannot be part of a batch"}}`}},
	{"an element that is not a message", "2025-03-26", `[7,{"jsonrpc":"2.0","id":1,"method":"ping"}]`, 200, []string{`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid JSON-RPC message: not an object"}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`}},
	{"a batch in a batch", "2025-03-26", `[[{"jsonrpc":"2.0","id":1,"method":"ping"}]]`, 200, []string{`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid JSON-RPC message: batches are not supported"}}`}},
	{"requests that run beside each other", "2025-03-26", `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv__both"}},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"srv__both"}}]`, 200, []string{`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`, `{"jsonrpc":"2.0","id":2,"result":{"content":[]}}`}},
	{"empty", "2025-03-26", `[]`, 400, []string{`the batch is empty`}},
	{"too many", "2025-03-26", `[` + strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, 51), ",") + `]`, 400, []string{`more than 50 messages`}},
	{"cut off", "2025-03-26", `[{"jsonrpc":"2.0","id":1,"method":"ping"}`, 400, []string{`-32700`}},
	{"a later version", "2025-06-18", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, 400, []string{`batches exist in protocol version 2025-03-26 only`}},
	{"an earlier version", "2024-11-05", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, 400, []string{`batches exist in protocol version 2025-03-26 only`}},
}

// batchRig has two tools: one that answers, and one that answers when it runs twice.
func batchRig(t *testing.T) *rig {
	met := make(chan struct{})
	return newRig(t,
		relay("srv__t", func(context.Context, tool.Call) (tool.Result, error) { return ok(`{"content":[]}`) }),
		relay("srv__both", func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			select { // the requests of a batch run beside each other
			case met <- struct{}{}:
			case <-met:
			case <-ctx.Done():
			}
			return ok(`{"content":[]}`)
		}))
}

func sameAnswers(got string, want []string, array bool) bool {
	if !array {
		return len(want) == 0 && got == "" || len(want) == 1 && strings.Contains(got, want[0])
	}
	parts, err := jsonrpc.Batch([]byte(got))
	var have []string
	for _, p := range parts {
		have = append(have, string(p))
	}
	slices.Sort(have)
	want = slices.Sorted(slices.Values(want))
	return err == nil && slices.Equal(have, want)
}

// FID-8: batches of 2025-03-26 over HTTP, and in no other version.
func TestBatchesOverHTTP(t *testing.T) {
	for _, tc := range batchCases {
		t.Run(tc.name, func(t *testing.T) {
			r := batchRig(t)
			a := r.send("POST", strings.Replace(initialize, "2025-06-18", tc.version, 1), nil)
			s := map[string]string{"Mcp-Session-Id": a.header.Get("Mcp-Session-Id")}
			if tc.version != "2024-11-05" {
				s["Mcp-Protocol-Version"] = tc.version
			}
			a = r.send("POST", tc.in, s)
			if a.status != tc.status || !sameAnswers(a.body, tc.want, a.status == 200) {
				t.Errorf("got %d %s, want %d %s", a.status, a.body, tc.status, tc.want)
			}
		})
	}
	r := batchRig(t)
	for name, header := range map[string]map[string]string{"without a session": nil, "in the modern era": modern("ping", "")} {
		if a := r.send("POST", `[`+initialize+`]`, header); a.status != 400 || !strings.Contains(a.body, "-32600") {
			t.Errorf("%s: got %d %s; want 400 with code -32600", name, a.status, a.body)
		}
	}
}

// FID-8: the same over stdio.
func TestBatchesOverStdio(t *testing.T) {
	for _, tc := range batchCases {
		t.Run(tc.name, func(t *testing.T) {
			r := batchRig(t)
			in, send := io.Pipe()
			var out strings.Builder
			done := make(chan error, 1)
			go func() { done <- r.srv.ServeStdio(t.Context(), tool.LocalOwner, in, &out, "") }()
			fmt.Fprintf(send, "%s\n%s\n", strings.Replace(initialize, "2025-06-18", tc.version, 1), tc.in)
			send.Close()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			got := strings.Join(lines[1:], "\n")
			if !sameAnswers(got, tc.want, tc.status == 200) || !json.Valid([]byte(lines[0])) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// The answers of a batch leave as one message, so they have its limit together.
func TestLargeBatches(t *testing.T) {
	large := strings.Repeat("x", 25<<20)
	r := newRig(t, relay("srv__large", func(context.Context, tool.Call) (tool.Result, error) {
		return ok(`{"content":[{"type":"text","text":"` + large + `"}]}`)
	}))
	a := r.send("POST", strings.Replace(initialize, "2025-06-18", "2025-03-26", 1), nil)
	var in []string
	for id := range 4 {
		in = append(in, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"srv__large"}}`, id))
	}
	a = r.send("POST", "["+strings.Join(in, ",")+"]", map[string]string{"Mcp-Session-Id": a.header.Get("Mcp-Session-Id")})
	whole, refused := strings.Count(a.body, large), strings.Count(a.body, "exceed 64 MiB in total: send the request by itself")
	if a.status != 200 || whole != 2 || refused != 2 {
		t.Errorf("status %d, %d whole answers and %d refused ones, want 200, 2 and 2", a.status, whole, refused)
	}
}

// A large batch takes its part of the room for large requests, as they do, and waits for
// it; what it cancels meanwhile is not run.
func TestLargeBatchesTakeTheirPart(t *testing.T) {
	held := make(chan int64, 2)
	r := newRig(t, relay("srv__held", func(context.Context, tool.Call) (tool.Result, error) {
		held <- intake.Requests().InUse()
		return ok(`{"content":[]}`)
	}))
	other := intake.Requests().TryTake(tool.Owner, intake.Requests().Total()/4)
	if other == nil {
		t.Fatal("the budget is in use")
	}
	defer other.Release()
	in, send := io.Pipe()
	out, wrote := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- r.srv.ServeStdio(t.Context(), tool.LocalOwner, in, wrote, "") }()
	answers := bufio.NewScanner(out)
	fmt.Fprintf(send, "%s\n", strings.Replace(initialize, "2025-06-18", "2025-03-26", 1))
	answers.Scan()
	pad := strings.Repeat("x", 2<<20)
	call := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"srv__held","arguments":{"pad":"%s"}}}`
	fmt.Fprintf(send, "["+call+","+call+"]\n", 11, pad, 12, pad)
	// The line after it is taken after it, and answered before it.
	fmt.Fprintln(send, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":11}}`)
	fmt.Fprintln(send, `{"jsonrpc":"2.0","id":13,"method":"ping"}`)
	if answers.Scan(); !strings.Contains(answers.Text(), `"id":13`) {
		t.Errorf("got %.200s first, want the answer to the ping", answers.Text())
	}
	other.Release()
	if answers.Scan(); !strings.Contains(answers.Text(), `"id":12`) || strings.Contains(answers.Text(), `"id":11`) {
		t.Errorf("got %.200s, want the answer of the batch to 12 alone", answers.Text())
	}
	if got := <-held; got < 4<<20 {
		t.Errorf("%d bytes are in use while a batch of 4 MiB is run, want all of it", got)
	}
	if len(held) > 0 {
		t.Error("a call that was cancelled while the batch waited was run")
	}
	send.Close()
	if err := <-done; err != nil {
		t.Errorf("ServeStdio = %v, want no error", err)
	}
	eventually.True(t, "all is given back", func() bool { return intake.Requests().InUse() == 0 })
}
