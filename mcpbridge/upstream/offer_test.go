package upstream_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// FID-6, FID-7: of what a server offers, what was agreed to is used and nothing else: the
// approved definition in place of the server's, the approved instructions, and for a
// tool that waits the words that say so.
func TestOnlyWhatWasAgreedToIsUsed(t *testing.T) {
	const approved = `{"name":"echo","title":"approved","description":"approved","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}`
	for _, tc := range []struct {
		name, modes        string
		agreed             upstream.Agreed
		listed, def, waits string
		instructions       string
		degraded           bool
	}{
		{
			name: "wording", agreed: upstream.Agreed{Approved: map[string]json.RawMessage{"echo": json.RawMessage(approved)}, Instructions: "approved"},
			listed: "echo header hidden", def: approved, instructions: "approved",
		},
		{
			name: "a schema", agreed: upstream.Agreed{Blocked: map[string]string{"echo": "its definition has changed"}, Instructions: "approved"},
			listed: "header hidden", instructions: "approved", degraded: true,
			waits: `tool "echo" of server "srv" waits for approval: its definition has changed; to review and approve it, run yaya mcp approve srv echo on the machine that runs yaya, or use the tab Trust of the server on yaya's page`,
		},
		{
			name: "somebody else", agreed: upstream.Agreed{Whole: "it is another", Blocked: map[string]string{"echo": "it is another", "hidden": "it is another", "header": "it is another"}},
			degraded: true,
			waits:    `tool "echo" of server "srv" waits for approval: it is another; to review and approve it, run yaya mcp approve srv on the machine that runs yaya, or use the tab Trust of the server on yaya's page`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			s := fakeServer(t, "srv", "instructs")
			var offered upstream.Offer
			p := upstream.New(upstream.Config{
				Server: s, Environ: func() []string { return s.Environ(os.LookupEnv) }, Procs: r.procs, HTTP: r.http, Name: "yaya", Version: "test", Instructions: "from the last time",
				Pin: func(o upstream.Offer) (upstream.Agreed, error) {
					offered = o
					return tc.agreed, nil
				},
			})
			if got := p.Instructions(); got != "from the last time" {
				t.Errorf("before it is there: %q", got)
			}
			if err := r.host.Install(t.Context(), feature.Contribution{Name: "t", Providers: []feature.Provider{p}}); err != nil {
				t.Fatal(err)
			}
			snap := r.host.Boundary(t.Context())
			if offered.Identity != "fake" || offered.Version != "2025-11-25" || len(offered.Tools) != 3 || len(offered.Instructions) != 4<<10 || !strings.HasPrefix(offered.Instructions, `Use me.\u{202e}`) || !strings.HasSuffix(offered.Instructions, "… [cut]") {
				t.Errorf("offered: %.300v", offered)
			}
			var listed []string
			for e := range snap.All() {
				listed = append(listed, e.Def.Identity.Tool)
				if e.Def.Identity.Tool == "echo" && (string(e.Def.Native) != tc.def || e.Def.Description != "approved" || e.Def.Title != "approved" || string(e.Def.Annotations) != `{"destructiveHint":true}`) {
					t.Errorf("in force: %+v", e.Def)
				}
			}
			if got := strings.Join(listed, " "); got != tc.listed {
				t.Errorf("listed %q, want %q", got, tc.listed)
			}
			if got := p.Instructions(); got != tc.instructions {
				t.Errorf("instructions %q, want %q", got, tc.instructions)
			}
			if got := r.status("srv").State == feature.Degraded; got != tc.degraded {
				t.Errorf("degraded = %v, want %v: %s", got, tc.degraded, r.status("srv").Reason)
			}
			res := r.call("srv__echo", `{}`)
			if tc.waits == "" {
				if !res.OK {
					t.Errorf("the call failed: %s", res.Text())
				}
			} else if res.ErrorKind != tool.ErrUnavailable || res.Text() != tc.waits {
				t.Errorf("got %s %q, want %q", res.ErrorKind, res.Text(), tc.waits)
			}
		})
	}
}

// FID-8: a server of 2025-03-26 may send batches, one of another version may not: a call
// that it answers so fails with the reason, and does not wait for its time limit.
func TestBatchesOfServers(t *testing.T) {
	for version, want := range map[string]string{"2025-03-26": "in a batch", "2025-06-18": "batches are not supported"} {
		r := newRig(t)
		r.stdio("srv", "batches speaks-"+version)
		r.ready("srv")
		res := r.callAs("c", "srv__echo", `{"name":"x","_meta":{"progressToken":1}}`, func(tool.Progress) {})
		got := res.Text()
		if res.Native != nil {
			got = native(t, res)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", version, got, want)
		}
	}
}

// PIN-1: a server that makes its tools when it hears that it is initialized offers all of
// them at once, and what is pinned is a list that nothing has changed under; one that never stops
// changing is not waited for.
func TestFirstListIsComplete(t *testing.T) {
	for modes, want := range map[string]string{"plain": "echo header hidden", "makes-tools": "t1 t2 t3", "makes-tools for-ever": "t1 t2 t3 t4"} {
		r := newRig(t)
		s := fakeServer(t, "srv", modes)
		offers := make(chan string, 16)
		p := upstream.New(upstream.Config{
			Server: s, Environ: func() []string { return s.Environ(os.LookupEnv) }, Procs: r.procs, HTTP: r.http, Name: "yaya", Version: "test",
			Pin: func(o upstream.Offer) (upstream.Agreed, error) {
				offers <- strings.Join(slices.Sorted(maps.Keys(o.Tools)), " ")
				return upstream.Agreed{}, nil
			},
		})
		if err := r.host.Install(t.Context(), feature.Contribution{Name: "t", Providers: []feature.Provider{p}}); err != nil {
			t.Fatal(err)
		}
		r.ready("srv")
		if got := <-offers; got != want {
			t.Errorf("%s: the first offer is %q, want %q", modes, got, want)
		}
	}
}
