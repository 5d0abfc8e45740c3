package intake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestRead(t *testing.T) {
	const limit = 1 << 20
	for _, n := range []int{0, 1, 4096, free - 1, free, free + 1, 300_000, limit} {
		want := bytes.Repeat([]byte("abc"), n)[:n]
		for name, size := range map[string]int64{"announced": int64(n), "not announced": -1} {
			for _, room := range []int{0, 10, 100_000} {
				b := NewBudget(8 << 20)
				got, held, err := b.Read(make([]byte, 0, room), iotest.HalfReader(bytes.NewReader(want)), size, "ada", limit)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%d bytes, %s, with room for %d: got %d, %v", n, name, room, len(got), err)
				}
				if n < free && held.Any() || n > free && b.InUse() < int64(n-free) {
					t.Errorf("%d bytes, %s: %d are counted", n, name, b.InUse())
				}
				held.Release()
				held.Release()
				if b.InUse() != 0 {
					t.Errorf("%d bytes, %s: %d are counted when they are released", n, name, b.InUse())
				}
			}
		}
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		r     io.Reader
		size  int64
		limit int
		want  error
	}{
		"announces too much":     {strings.NewReader("x"), 101, 100, ErrTooLarge},
		"too much":               {strings.NewReader(strings.Repeat("x", 101)), -1, 100, ErrTooLarge},
		"too much, and large":    {strings.NewReader(strings.Repeat("x", 300_000)), -1, 299_999, ErrTooLarge},
		"ends early":             {strings.NewReader("x"), 2, 100, io.ErrUnexpectedEOF},
		"large, and ends early":  {strings.NewReader(strings.Repeat("x", 200_000)), 200_001, 1 << 20, io.ErrUnexpectedEOF},
		"breaks":                 {io.MultiReader(strings.NewReader("x"), iotest.ErrReader(broken)), 2, 100, broken},
		"more than there is now": {strings.NewReader(strings.Repeat("x", 700<<10)), -1, 1 << 20, ErrBusy},
	} {
		b := NewBudget(1 << 20)
		if _, _, err := b.Read(nil, tt.r, tt.size, "ada", tt.limit); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", name, err, tt.want)
		}
		if b.InUse() != 0 {
			t.Errorf("%s: %d bytes stay counted", name, b.InUse())
		}
	}
}

// SEC-10: one party's bodies take half of the budget; others find the rest.
func TestShares(t *testing.T) {
	b := NewBudget(4 << 20)
	body := make([]byte, 300<<10)
	var all []Held
	read := func(party string) error {
		_, held, err := b.Read(nil, bytes.NewReader(body), int64(len(body)), party, 1<<20)
		all = append(all, held)
		return err
	}
	var err error
	for n := 0; err == nil; n++ {
		if err = read("greedy"); n > 100 {
			t.Fatal("nothing bounds a party")
		}
	}
	if !errors.Is(err, ErrBusy) || b.InUse() > 2<<20 || b.InUse() < 1<<20 {
		t.Errorf("a greedy party holds %d bytes and got %v, want half of %d and %v", b.InUse(), err, 4<<20, ErrBusy)
	}
	for n := range 4 {
		if err := read(fmt.Sprint("modest", n)); err != nil {
			t.Errorf("a modest party: %v", err)
		}
	}
	moved := all[0].Move()
	all[0].Release()
	before := b.InUse()
	if moved.Release(); b.InUse() >= before {
		t.Error("a move does not take along what is held")
	}
	for i := range all {
		all[i].Release()
	}
	if b.InUse() != 0 || len(b.party) != 0 {
		t.Errorf("%d bytes of %d parties are counted when all is released", b.InUse(), len(b.party))
	}
}

// SEC-10: memory grows with the data that arrived, not with the announced length.
func TestAnnouncingCostsNothing(t *testing.T) {
	b := NewBudget(64 << 20)
	got := testing.Benchmark(func(tb *testing.B) {
		tb.ReportAllocs()
		for tb.Loop() {
			_, _, _ = b.Read(nil, strings.NewReader("{"), 4<<20, "ada", 4<<20)
		}
	}).AllocedBytesPerOp()
	if got > 4*free {
		t.Errorf("4 MiB that were announced and do not come cost %d bytes", got)
	}
}

// A small body costs only its buffer, and nothing if that exists.
func TestSmallBodiesAreFree(t *testing.T) {
	b := NewBudget(64 << 20)
	buf, r, body := make([]byte, 0, 8<<10), new(bytes.Reader), bytes.Repeat([]byte("x"), 4<<10)
	n := testing.AllocsPerRun(100, func() {
		r.Reset(body)
		data, held, err := b.Read(buf, r, int64(len(body)), "ada", 4<<20)
		if err != nil || len(data) != len(body) {
			t.Errorf("got %v, %v, want len(data) %v", len(data), err, len(body))
		}
		held.Release()
	})
	if n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// A large body without an announced length holds only the size that arrived, not the
// possible size, so that a request of a megabyte finds room beside parked ones.
func TestLargeBodiesHoldWhatCame(t *testing.T) {
	const limit, n = 64 << 20, 1100 << 10
	q := NewQueue(256 << 20)
	want := bytes.Repeat([]byte("x"), n)
	other := Parked().TryTake("bob", 1<<20)
	defer other.Release()
	for name, size := range map[string]int64{"announced": n, "not announced": -1} {
		data, held, err := NewBudget(limit).ReadQueued(t.Context(), q, nil, bytes.NewReader(want), size, "ada", limit)
		if err != nil || !bytes.Equal(data, want) {
			t.Fatalf("%s: got %d bytes, %v", name, len(data), err)
		}
		if got := q.InUse(); got != n || cap(data) > 2*n {
			t.Errorf("%s: %d bytes are counted and %d held, want %d", name, got, cap(data), n)
		}
		if !held.Park() || q.InUse() != 0 {
			t.Errorf("%s: there is no room where requests are parked", name)
		}
		held.Release()
	}
}
