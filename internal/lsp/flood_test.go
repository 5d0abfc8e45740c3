package lsp_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/internal/lsp"
)

// taken returns the bytes that do allocates.
func taken(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A list of many small elements takes a few times the memory of its text, though each of them would take
// thirty times that of its own.
func TestListsTakeLittleMemory(t *testing.T) {
	const most = 64 << 20
	many := strings.Repeat("{},", 1<<20) + "{}"
	for name, say := range map[string]func(f *fake){
		"findings": func(f *fake) { publish(f, "file:///w/b.ts", "", many) },
		"settings": func(f *fake) {
			f.say(`{"jsonrpc":"2.0","id":1,"method":"workspace/configuration","params":{"items":[%s]}}`, many)
			if m := f.next(""); m["error"] == nil || m["result"] != nil {
				t.Errorf("a request for %d settings was not answered with an error", 1<<20)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, f := started(t, `{}`)
				defer f.gone()
				if got := taken(func() { say(f); synctest.Wait() }); got > most {
					t.Errorf("a list of 3 MiB took %d MiB, want at most %d", got>>20, most>>20)
				}
			})
		})
	}
}

// Memory is taken as a message arrives, not as its header announces.
func TestAnnouncedMessagesTakeNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := started(t, `{}`)
		defer f.gone()
		if got := taken(func() { f.say("Content-Length: 4194304\r\n\r\n{"); synctest.Wait() }); got > 1<<20 {
			t.Errorf("a header and one byte took %d bytes, want less than 1 MiB", got)
		}
		_ = f.out.Close()
		<-s.Done()
	})
}

// A finding of a long message does not keep the rest of it in memory; keys that are too long are not kept.
func TestKeptTextIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := started(t, `{}`)
		defer f.gone()
		long := strings.Repeat("x", 1<<20)
		go func() {
			f.next("textDocument/didSave")
			publish(f, "file:///w/a.ts", "", at(0, 0, ""))
			for n := range 40 {
				publish(f, fmt.Sprintf("file:///w/%d.ts", n), "", strings.Replace(at(0, 0, ""), "wrong", `wrong\n`+long, 1))
			}
			publish(f, "file:///w/"+strings.Repeat("y", 9<<10), "", at(0, 0, ""))
			f.say(`{"jsonrpc":"2.0","method":"$/progress","params":{"token":%q,"value":{"kind":"begin"}}}`, long)
		}()
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		all, whole, err := s.Check(t.Context(), []lsp.File{{Path: "a.ts", Text: "x"}}, none)
		if err != nil || !whole || len(all) != 41 {
			t.Errorf("Check = %d findings, %v, %v; want those of a.ts and 40 others", len(all), whole, err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if got := int64(after.HeapAlloc) - int64(before.HeapAlloc); got > 20<<20 { //nolint:gosec // both are small
			t.Errorf("41 findings keep %d MiB", got>>20)
		}
		runtime.KeepAlive(s)
	})
}

// A server that asks and does not read the answers is given up, and does not keep the reader from reading.
func TestServerThatDoesNotReadItsInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := started(t, `{}`)
		defer func() {
			f.gone()
			for range f.said { // what could not be said before
			}
		}()
		go func() { // nobody reads f.said, which holds 100
			for range 3000 {
				f.say(`{"jsonrpc":"2.0","id":1,"method":"client/registerCapability"}`)
			}
		}()
		select {
		case <-s.Done():
		case <-time.After(time.Minute):
			t.Error("the reader waits for a server that does not read")
		}
	})
}

// A request whose id is long is not answered: the answer would wait with it.
func TestLongIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := started(t, `{}`)
		defer f.gone()
		f.say(`{"jsonrpc":"2.0","id":%q,"method":"client/registerCapability"}`, strings.Repeat("x", 200))
		<-s.Done()
	})
}
