package upstream

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/yaya-ai/yaya/internal/intake"
)

// SEC-10: what was announced costs nothing before it comes.
func TestReadAllOfAnnouncedSize(t *testing.T) {
	at := func() *filler { return &filler{room: room{party: "p", limit: 16 << 20, scratch: intake.TempFile}, ctx: t.Context()} }
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
