package upstream_test

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/intake"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// addStored adds the test binary as a server whose answers may be put aside.
func (r *rig) addStored(name, modes string) {
	r.t.Helper()
	root, err := os.OpenRoot(r.t.TempDir())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = root.Close() })
	s := fakeServer(r.t, name, modes)
	p := upstream.New(upstream.Config{Server: s, Environ: func() []string { return s.Environ(os.LookupEnv) }, Procs: r.procs, HTTP: r.http, Name: "yaya", Artifacts: tool.NewStore(root),
		Limits: func() upstream.Limits { return upstream.Limits{Message: 8 << 20} }})
	if err := r.host.Install(r.t.Context(), feature.Contribution{Name: name, Providers: []feature.Provider{p}}); err != nil {
		r.t.Fatal(err)
	}
	r.ready(name)
}

// textOf returns the text of a result, "" when it has none.
func textOf(t *testing.T, raw string) string {
	t.Helper()
	var res struct{ Content []struct{ Text string } }
	if err := json.Unmarshal([]byte(raw), &res); err != nil {
		t.Fatal(err)
	}
	if len(res.Content) == 0 {
		return ""
	}
	return res.Content[0].Text
}

// whole returns a native result, and gives its memory back as a client's side does.
func whole(t *testing.T, res tool.Result) string {
	t.Helper()
	out := native(t, res)
	res.Native.Buffer.Release()
	return out
}

// FID-4: a line above the limit fails its own call, wherever its id is, and neither
// the process nor another call.
func TestLongLineFailsItsCall(t *testing.T) {
	r := newRig(t)
	r.addStored("big", "sizes")
	other := &client{name: "other"}
	var hung string
	var wg sync.WaitGroup
	wg.Go(func() { hung = whole(t, r.callFor(other, "big__echo", `{"hangs":true}`)) })
	c := &client{name: "c"}
	for name, args := range map[string]string{
		"the id first": `{"bytes":9000000}`,
		"the id last":  `{"bytes":9000000,"idLast":true}`,
		"much longer":  `{"bytes":100000000,"idLast":true}`,
	} {
		res := r.callFor(c, "big__echo", args)
		const want = `server "big": its answer is larger than 8 MiB; raise the setting servers.max_message_bytes`
		if res.OK || !strings.Contains(res.Text(), want) {
			t.Errorf("%s: got %s, want %s", name, res.Text(), want)
		}
	}
	// An answer that is too long is an answer: the server is not kept from anybody.
	for range 6 {
		if res := r.callFor(c, "big__echo", `{"bytes":9000000}`); !strings.Contains(res.Text(), "its answer is larger") {
			t.Fatalf("after several such answers: got %s", res.Text())
		}
	}
	for _, n := range []int{7_000_000, 1, 0} {
		if got := len(textOf(t, whole(t, r.callFor(c, "big__echo", fmt.Sprintf(`{"bytes":%d,"idLast":true}`, n))))); got != n {
			t.Errorf("got a text of %d bytes, want %d", got, n)
		}
	}
	wg.Wait()
	if got := textOf(t, hung); got != "at last" {
		t.Errorf("the call that was in flight got %q, want %q", got, "at last")
	}
	if got := intake.Answers().InUse(); got != 0 {
		t.Errorf("%d bytes are still held, want 0", got)
	}
}

// FID-3: when the budget for large messages is used up, a large answer waits, and a
// small one behind it on the same pipe does not.
func TestLargeAnswerWaits(t *testing.T) {
	for _, idLast := range []bool{false, true} {
		r := newRig(t)
		r.addStored("big", "sizes")
		c := &client{name: "c"}
		var all []*intake.Share
		for _, party := range []string{"a", "b", "c", "d"} {
			share := intake.Answers().TryTake(party, intake.Answers().Total()/4)
			if share == nil {
				t.Fatal("the budget is in use")
			}
			all = append(all, share)
		}
		var large string
		done := make(chan struct{})
		go func() {
			defer close(done)
			large = whole(t, r.callFor(c, "big__echo", fmt.Sprintf(`{"bytes":5000000,"idLast":%v}`, idLast)))
		}()
		for range 3 {
			if got := textOf(t, whole(t, r.callFor(c, "big__echo", `{"bytes":3}`))); got != "xxx" {
				t.Errorf("the small answer is %q, want xxx", got)
			}
		}
		select {
		case <-done:
			t.Error("the large answer came although there was no room for it")
		default:
		}
		for _, share := range all {
			share.Release()
		}
		<-done
		if got := textOf(t, large); got != strings.Repeat("x", 5_000_000) {
			t.Errorf("the large answer has %d bytes, want 5000000", len(got))
		}
		for deadline := time.Now().Add(eventually.Limit); intake.Answers().InUse() != 0; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatalf("%d bytes are still held, want 0", intake.Answers().InUse())
			}
		}
	}
}
