package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/intake"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// SEC-10: an announced answer costs nothing before it comes.
func TestReadAllOfAnnouncedSize(t *testing.T) {
	at := func() *filler {
		return &filler{room: room{party: "p", limit: 16 << 20, scratch: intake.TempFile}}
	}
	for _, n := range []int{0, 1, 2048, trusted, trusted + 1, 300_000, 3 << 20} {
		want := bytes.Repeat([]byte("abc"), n)[:n]
		for name, r := range map[string]io.Reader{"whole": bytes.NewReader(want), "in pieces": iotest.HalfReader(bytes.NewReader(want))} {
			b, err := at().readAll(t.Context(), r, int64(n))
			if err != nil || !bytes.Equal(b.B, want) {
				t.Errorf("%d bytes, %s: %v", n, name, err)
				continue
			}
			b.Release()
		}
		if _, err := at().readAll(t.Context(), bytes.NewReader(want), int64(n)+1); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("one of %d bytes is missing: got %v, want %v", n+1, err, io.ErrUnexpectedEOF)
		}
	}
	if _, err := at().readAll(t.Context(), bytes.NewReader(nil), 17<<20); !errors.Is(err, errTooLarge) {
		t.Errorf("more was announced than the limit: got %v, want %v", err, errTooLarge)
	}
	got := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = at().readAll(t.Context(), bytes.NewReader(make([]byte, 100)), 8<<20)
		}
	}).AllocedBytesPerOp()
	if got > 256<<10 {
		t.Errorf("8 MiB that were announced and do not come cost %d bytes", got)
	}
}

// FID-3: the clock of a call stands still while its answer waits for memory.
func TestWaitingForRoomStopsTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taken := intake.Answers().TryTake("p", intake.Answers().Total()/4)
		if taken == nil {
			t.Fatal("the budget is in use")
		}
		defer taken.Release()
		l := newLimit(t.Context(), times{silent: time.Minute})
		defer l.stop()
		fill := &filler{room: room{party: "p", limit: 16 << 20, scratch: intake.TempFile}}
		want := bytes.Repeat([]byte("abc"), 1<<20)
		var got *bufpool.Buffer
		var err error
		var wg sync.WaitGroup
		wg.Go(func() { got, err = fill.readAll(l, bytes.NewReader(want), -1) })
		time.Sleep(time.Hour)
		synctest.Wait()
		if l.Err() != nil {
			t.Errorf("the call ended while its answer waited: %v", context.Cause(l))
		}
		taken.Release()
		wg.Wait()
		if err != nil || !bytes.Equal(got.B, want) {
			t.Fatalf("readAll = %v, want the answer", err)
		}
		got.Release()
		<-l.Done() // the clock runs again
	})
}

// A message that finds no room in files is lost alone, with an error that says so, and
// does not stop its connection for long.
func TestNoRoomInFiles(t *testing.T) {
	var all []*intake.Share
	for _, party := range []string{"a", "b"} {
		all = append(all, intake.Arriving().TryTake(party, intake.Arriving().Total()/2))
	}
	defer func() {
		for _, s := range all {
			s.Release()
		}
	}()
	for name, tc := range map[string]struct {
		scratch func() (*os.File, error)
		want    string
	}{
		"the budget is used up": {intake.TempFile, "1024 MiB for all, 512 MiB for one caller"},
		"no file":               {func() (*os.File, error) { return nil, errors.New("disk full") }, "cannot be put aside: disk full"},
	} {
		synctest.Test(t, func(t *testing.T) {
			in := `{"id":7,"result":{"t":"` + strings.Repeat("x", 3<<20) + `"}}` + "\n" + `{"id":8,"result":{}}` + "\n"
			l := newLines(strings.NewReader(in), room{party: "p", limit: 16 << 20, scratch: tc.scratch})
			var why error
			got := ""
			l.lost = func(head, _ []byte, err error) bool {
				if id, _ := jsonrpc.Glimpse(head, nil); string(id) != "7" {
					t.Errorf("%s: lost %s, want 7", name, id)
				}
				why = err
				return true
			}
			l.line = func(line []byte, buf *bufpool.Buffer) error {
				got = string(line)
				buf.Release()
				return nil
			}
			if err := l.read(t.Context()); !errors.Is(err, io.EOF) {
				t.Errorf("%s: read = %v, want the end", name, err)
			}
			if why == nil || !strings.Contains(why.Error(), tc.want) || got != `{"id":8,"result":{}}` {
				t.Errorf("%s: lost for %v, then %s; want %q and the next line", name, why, got, tc.want)
			}
		})
	}
}

// aside puts a message of 64 MiB aside, of which the first bytes are there, as a reader
// does.
func aside(t *testing.T, at room) (*parked, error) {
	t.Helper()
	f, err := intake.TempFile()
	if err != nil {
		t.Fatal(err)
	}
	p := &parked{f: f, room: at}
	if err := p.write(t.Context(), make([]byte, 2*glimpsed)); err != nil {
		p.close()
		return nil, err
	}
	const size = 64 << 20
	rest, err := intake.Arriving().TakeSoon(t.Context(), at.payer(), size-asideStep, patience)
	if err != nil {
		p.close()
		return nil, err
	}
	p.share.Add(rest)
	p.size, p.held = size, size
	return p, nil
}

// Answers of a shared server that wait for a slow caller are that caller's part of the
// room in files: the server's other callers, and other servers, find theirs.
func TestSlowCallersOfSharedServersFillTheirOwnPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := func(server string) room { return room{server: "server " + server, limit: maxMessage} }
		m := newMux(new(atomic.Uint64), new(deaf), func([]byte) {})
		handOut := func(id int64, by string, at room) *pending {
			t.Helper()
			p, err := aside(t, at)
			if err != nil {
				t.Fatalf("answer %d, for %s: %v", id, by, err)
			}
			wait, err := m.add(&request{id: id, by: by})
			if err != nil {
				t.Fatal(err)
			}
			if !m.late(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{`, id), nil, p) {
				t.Fatalf("answer %d was not handed out", id)
			}
			return wait
		}
		begun := time.Now()
		slow := map[int64]*pending{}
		for id := range int64(8) { // half of the room
			slow[id] = handOut(id, "ada", shared("a"))
		}
		slow[20] = handOut(20, "bob", shared("a"))
		slow[21] = handOut(21, "bob", shared("b"))
		if took := time.Since(begun); took != 0 {
			t.Errorf("answers for others held their connections for %v, want 0s", took)
		}
		ninth := handOut(9, "ada", shared("b"))
		a := <-ninth.done
		if _, err := a.parked.reply(t.Context(), &request{id: 9, by: "ada"}); !errors.Is(err, errNoRoom) || time.Since(begun) != patience {
			t.Errorf("the ninth answer for ada: got %v after %v, want %v after %v", err, time.Since(begun), errNoRoom, patience)
		}
		for _, p := range slow { // not dropped: their channels are the bubble's
			a := <-p.done
			a.discard()
		}
		if got := intake.Arriving().InUse(); got != 0 {
			t.Errorf("%d bytes are counted when all is over, want 0", got)
		}
	})
}

// A shared server whose answers do not end has its own part of the room in files.
func TestUnfinishedAnswersAreTheirServersPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []*parked
		defer func() {
			for _, p := range all {
				p.close()
			}
		}()
		for _, server := range []string{"greedy", "greedy", "greedy", "greedy", "greedy", "greedy", "greedy", "greedy", "modest"} {
			p, err := aside(t, (&session{p: New(Config{Server: servers.Server{Name: server}})}).room())
			if err != nil {
				t.Fatalf("server %s: %v", server, err)
			}
			all = append(all, p)
		}
	})
}
