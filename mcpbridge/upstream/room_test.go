package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/intake"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// SEC-10: what was announced costs nothing before it comes.
func TestReadAllOfAnnouncedSize(t *testing.T) {
	at := func() *filler {
		return &filler{room: room{party: "p", limit: 16 << 20, scratch: intake.TempFile}, ctx: t.Context()}
	}
	for _, n := range []int{0, 1, 2048, trusted, trusted + 1, 300_000, 3 << 20} {
		want := bytes.Repeat([]byte("abc"), n)[:n]
		for name, r := range map[string]io.Reader{"whole": bytes.NewReader(want), "in pieces": iotest.HalfReader(bytes.NewReader(want))} {
			b, err := at().readAll(r, int64(n))
			if err != nil || !bytes.Equal(b.B, want) {
				t.Errorf("%d bytes, %s: %v", n, name, err)
				continue
			}
			b.Release()
		}
		if _, err := at().readAll(bytes.NewReader(want), int64(n)+1); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("one of %d bytes is missing: got %v, want %v", n+1, err, io.ErrUnexpectedEOF)
		}
	}
	if _, err := at().readAll(bytes.NewReader(nil), 17<<20); !errors.Is(err, errTooLarge) {
		t.Errorf("more was announced than the limit: got %v, want %v", err, errTooLarge)
	}
	got := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = at().readAll(bytes.NewReader(make([]byte, 100)), 8<<20)
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
		fill := &filler{room: room{party: "p", limit: 16 << 20, scratch: intake.TempFile}, ctx: l}
		want := bytes.Repeat([]byte("abc"), 1<<20)
		var got *bufpool.Buffer
		var err error
		var wg sync.WaitGroup
		wg.Go(func() { got, err = fill.readAll(bytes.NewReader(want), -1) })
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

// What finds no room in files costs itself, says so, and does not stop its connection
// for long.
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
			l := newLines(strings.NewReader(in), room{party: "p", limit: 16 << 20, scratch: tc.scratch}, t.Context())
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
			if err := l.read(); !errors.Is(err, io.EOF) {
				t.Errorf("%s: read = %v, want the end", name, err)
			}
			if why == nil || !strings.Contains(why.Error(), tc.want) || got != `{"id":8,"result":{}}` {
				t.Errorf("%s: lost for %v, then %s; want %q and the next line", name, why, got, tc.want)
			}
		})
	}
}
