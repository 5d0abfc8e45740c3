package bufpool

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"sync"
	"testing"
	"testing/iotest"
	"weak"

	"github.com/yaya-ai/yaya/internal/eventually"
)

func TestBuffersHaveRoomAndAreEmpty(t *testing.T) {
	for _, n := range []int{0, 1, 2048, 2049, 300_000, 1 << 20, 1<<20 + 1, 4 << 20} {
		for range 3 {
			b := Get(n)
			if len(b.B) != 0 || cap(b.B) < n {
				t.Errorf("Get(%d): %d bytes with room for %d", n, len(b.B), cap(b.B))
			}
			b.B = append(b.B, make([]byte, n)...)
			b.Release()
		}
	}
	var none *Buffer
	none.Release()
}

// A buffer is at most a quarter larger than asked for, and goes back into its own class.
func TestClasses(t *testing.T) {
	for class := range classes {
		size := sizeOf(class)
		if got := classOf(size); got != class {
			t.Errorf("class of %d bytes: got %d, want %d", size, got, class)
		}
		if got := classOf(size - 1); got != class-1 {
			t.Errorf("class of %d bytes: got %d, want %d", size-1, got, class-1)
		}
		for _, n := range []int{size - 1, size, size + 1} {
			if n > 64<<20 {
				continue // takes memory
			}
			if got := cap(Get(n).B); got < n || got > max(n+n/4+1, 1<<minBits) {
				t.Errorf("Get(%d): got room for %d bytes, want at most a quarter more", n, got)
			}
		}
	}
	if size := sizeOf(classes - 1); size != 1<<maxBits {
		t.Errorf("largest class: got %d bytes, want %d", size, 1<<maxBits)
	}
}

func TestReadAll(t *testing.T) {
	for _, n := range []int{0, 1, 16 << 10, 16<<10 + 1, 100_000, 200_000} {
		want := bytes.Repeat([]byte("abc"), n)[:n]
		for name, r := range map[string]io.Reader{"whole": bytes.NewReader(want), "in pieces": iotest.HalfReader(bytes.NewReader(want)), "with the last piece": iotest.DataErrReader(bytes.NewReader(want))} {
			b, err := ReadAll(r, 200_000)
			if err != nil || !bytes.Equal(b.B, want) {
				t.Errorf("%d bytes, %s: %v", n, name, err)
			}
		}
	}
	if _, err := ReadAll(bytes.NewReader(make([]byte, 200_001)), 200_000); !errors.Is(err, ErrTooLarge) {
		t.Errorf("above the limit: %v", err)
	}
	if _, err := ReadAll(iotest.ErrReader(io.ErrUnexpectedEOF), 10); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a broken reader: %v", err)
	}
}

// Nobody shares a buffer with somebody else.
func TestBuffersAreNotShared(t *testing.T) {
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				n := 1 + (i*37)%40_000
				b := Get(n)
				b.B = append(b.B, bytes.Repeat([]byte{byte(g)}, n)...)
				for _, c := range b.B {
					if c != byte(g) {
						t.Errorf("goroutine %d found %d", g, c)
						return
					}
				}
				b.Release()
			}
		})
	}
	wg.Wait()
}

func BenchmarkGet256K(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		x := Get(256 << 10)
		x.Release()
	}
}

// OnRelease reports each released buffer once.
func TestOnRelease(t *testing.T) {
	n := 0
	b := Get(10)
	b.OnRelease(func() { n++ })
	b.Release()
	Get(10).Release()
	if n != 1 {
		t.Errorf("told %d times, want once", n)
	}
	told := make(chan struct{})
	Get(5 << 20).OnRelease(func() { close(told) })
	for {
		select {
		case <-told:
			return
		default:
			runtime.GC() // until it has been noticed that nobody has the buffer
		}
	}
}

// FID-3: a large buffer is there, on whatever processor, for the caller that has waited for
// its share of a budget: the budget would not limit the memory if that caller needed another.
func TestReleasedBufferIsThereWhenTold(t *testing.T) {
	const size, rounds = 3 << 20, 200
	again := 0
	for range rounds { // a collection may come in between
		b, told, took := Get(size), make(chan struct{}), make(chan *byte)
		bytes := &b.B[:1][0]
		go func() {
			<-told
			next := Get(size)
			defer next.Release()
			took <- &next.B[:1][0]
		}()
		b.OnRelease(func() {
			close(told)
			if <-took == bytes {
				again++
			}
		})
		b.Release()
	}
	if again < rounds/2 {
		t.Errorf("%d of %d buffers were there when their release was told, want most", again, rounds)
	}
}

// Large buffers that nobody holds last no longer than until a collection.
func TestLargeBuffersAreCollected(t *testing.T) {
	of := func() weak.Pointer[Buffer] {
		b := Get(5 << 20)
		defer b.Release()
		return weak.Make(b)
	}()
	eventually.True(t, "the buffer is collected", func() bool { runtime.GC(); return of.Value() == nil })
	if next := Get(5 << 20); len(next.B) != 0 || cap(next.B) < 5<<20 {
		t.Errorf("Get = %d bytes of %d, want none of at least 5 MiB", len(next.B), cap(next.B))
	}
}
