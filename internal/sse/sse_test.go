package sse

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func readAll(t *testing.T, r io.Reader, limit int) ([]Event, error) {
	t.Helper()
	sr := NewReader(r, limit)
	var out []Event
	for {
		ev, err := sr.Next()
		if err != nil {
			return out, err
		}
		out = append(out, ev)
	}
}

func TestReaderFollowsTheStandard(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []Event
	}{
		{"one event", "data: a\n\n", []Event{{Data: []byte("a")}}},
		{"byte order mark is skipped", "\ufeffdata: a\n\n", []Event{{Data: []byte("a")}}},
		{"CRLF", "event: x\r\ndata: a\r\n\r\n", []Event{{Name: "x", Data: []byte("a")}}},
		{"CR alone", "data: a\r\rdata: b\r\r", []Event{{Data: []byte("a")}, {Data: []byte("b")}}},
		{"several data lines", "data: a\ndata\ndata: b\n\n", []Event{{Data: []byte("a\n\nb")}}},
		{"comments and unknown fields", ": hi\nfoo: 1\ndata: a\n\n", []Event{{Data: []byte("a")}}},
		{"event without data is not dispatched", "event: x\n\ndata: a\n\n", []Event{{Data: []byte("a")}}},
		{"id stays until it changes", "id: 1\ndata: a\n\ndata: b\n\n", []Event{{ID: "1", Data: []byte("a")}, {ID: "1", Data: []byte("b")}}},
		{"id with NUL is ignored", "id: 1\x00\ndata: a\n\n", []Event{{Data: []byte("a")}}},
		{"only one space is stripped", "data:  a\n\n", []Event{{Data: []byte(" a")}}},
		{"event cut off by the end is dropped", "data: a\n\ndata: b\n", []Event{{Data: []byte("a")}}},
	} {
		for _, mode := range []struct {
			name string
			r    io.Reader
		}{
			{"whole", strings.NewReader(tc.in)},
			{"byte by byte", iotest.OneByteReader(strings.NewReader(tc.in))},
		} {
			got, err := readAll(t, mode.r, 1<<10)
			if !errors.Is(err, io.EOF) {
				t.Errorf("%s, %s: got error %v, want EOF", tc.name, mode.name, err)
			}
			if len(got) != len(tc.want) {
				t.Errorf("%s, %s: got %d events %q, want %d", tc.name, mode.name, len(got), got, len(tc.want))
				continue
			}
			for i := range got {
				if got[i].Name != tc.want[i].Name || got[i].ID != tc.want[i].ID || !bytes.Equal(got[i].Data, tc.want[i].Data) {
					t.Errorf("%s, %s: event %d: got %q, want %q", tc.name, mode.name, i, got[i], tc.want[i])
				}
			}
		}
	}
}

// UP-29: an event without end costs no more than the limit.
func TestReaderBoundsAnEvent(t *testing.T) {
	endless := io.MultiReader(strings.NewReader("data: "), neverEnding('x'))
	if _, err := readAll(t, endless, 1<<16); !errors.Is(err, ErrTooLarge) {
		t.Errorf("endless line: got %v, want ErrTooLarge", err)
	}
	many := strings.Repeat("data: xxxxxxxx\n", 1000)
	if _, err := readAll(t, strings.NewReader(many), 1<<10); !errors.Is(err, ErrTooLarge) {
		t.Errorf("endless event: got %v, want ErrTooLarge", err)
	}
	atLimit := "data: " + strings.Repeat("x", 94) + "\n\n"
	if got, err := readAll(t, strings.NewReader(atLimit), 100); len(got) != 1 || !errors.Is(err, io.EOF) {
		t.Errorf("event of exactly the limit: got %d events, %v", len(got), err)
	}
}

type neverEnding byte

func (b neverEnding) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

// HT-10: a conforming parser sees exactly the written events.
func TestAppendCannotBeInjected(t *testing.T) {
	for _, bad := range []string{"a\nb", "a\rb", "a\x00"} {
		if _, err := Append(nil, Event{Name: bad, Data: []byte("x")}); err == nil {
			t.Errorf("event name %q was accepted", bad)
		}
		if _, err := Append(nil, Event{ID: bad, Data: []byte("x")}); err == nil {
			t.Errorf("event id %q was accepted", bad)
		}
	}
	hostile := "x\r\nevent: forged\rdata: y\n\nid: 9\u2028z"
	b, err := Append(nil, Event{Name: "n", ID: "1", Data: []byte(hostile)})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := readAll(t, bytes.NewReader(b), 1<<10)
	want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(hostile)
	if len(got) != 1 || got[0].Name != "n" || got[0].ID != "1" || string(got[0].Data) != want {
		t.Errorf("got %q, want one event with data %q", got, want)
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("event: a\ndata: b\n\n"), 3)
	f.Add([]byte("data: a\r\r\ndata:b\r\n\r\n: c\n\n"), 1)
	f.Fuzz(func(t *testing.T, in []byte, chunk int) {
		whole, errA := readAll(t, bytes.NewReader(in), 256)
		pieces, errB := readAll(t, iotest.OneByteReader(bytes.NewReader(in)), 256)
		if len(whole) != len(pieces) || !errors.Is(errB, errA) {
			t.Fatalf("splitting the stream changed it: %d events, %v against %d events, %v", len(whole), errA, len(pieces), errB)
		}
		for i := range whole {
			if len(whole[i].Data) > 256 {
				t.Fatalf("event of %d bytes passed a limit of 256", len(whole[i].Data))
			}
			if !bytes.Equal(whole[i].Data, pieces[i].Data) || whole[i].Name != pieces[i].Name {
				t.Fatalf("event %d differs by chunking: %q against %q", i, whole[i], pieces[i])
			}
		}
	})
}

// FID-4: an event that is too large costs itself, and the next one comes.
func TestReaderSkips(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		in := "data: " + strings.Repeat("x", 5000) + "tail" + end + "id: 7" + end + end + "data: next" + end + end
		for name, src := range map[string]io.Reader{"whole": strings.NewReader(in), "byte by byte": iotest.OneByteReader(strings.NewReader(in))} {
			r := NewReader(src, 100)
			ev, err := r.Next()
			if !errors.Is(err, ErrTooLarge) || !strings.HasPrefix("xxx", string(ev.Data[:min(len(ev.Data), 3)])) {
				t.Errorf("%q, %s: Next = %q, %v, want the head and ErrTooLarge", end, name, ev.Data, err)
			}
			tail, err := r.Skip(64)
			if err != nil || !strings.Contains(string(tail), "xtail") || len(tail) > 128 {
				t.Errorf("%q, %s: Skip = %q, %v, want the tail", end, name, tail, err)
			}
			if ev, err = r.Next(); err != nil || string(ev.Data) != "next" {
				t.Errorf("%q, %s: after it Next = %q, %v, want %q", end, name, ev.Data, err, "next")
			}
		}
	}
}

// The memory of an event is its reader's user's to choose.
func TestReaderGrow(t *testing.T) {
	want := strings.Repeat("y", 10_000)
	r := NewReader(strings.NewReader("event: e\ndata: "+want+"\ndata: "+want+"\n\n"), 1<<20)
	asked := 0
	r.Grow = func(data []byte, n int) ([]byte, error) {
		asked++
		return append(make([]byte, 0, 2*(len(data)+n)), data...), nil
	}
	if ev, err := r.Next(); err != nil || string(ev.Data) != want+"\n"+want || ev.Name != "e" || asked == 0 {
		t.Errorf("Next = %d bytes, %v after %d questions", len(ev.Data), err, asked)
	}
	no := errors.New("no room")
	r = NewReader(strings.NewReader("data: a\n\n"), 1<<20)
	r.Grow = func(data []byte, _ int) ([]byte, error) { return data, no }
	if _, err := r.Next(); !errors.Is(err, no) {
		t.Errorf("Next = %v, want %v", err, no)
	}
}

// FID-3: the data of a large event goes elsewhere while it comes, and is the same.
func TestReaderSpills(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for name, tc := range map[string]struct{ in, want string }{
		"one line":                 {"event: message\nid: 7\ndata: " + long + "\n\n", long},
		"without a space":          {"data:" + long + "\r\n\r\n", long},
		"many lines":               {strings.Repeat("data: 0123456789\n", 100) + "\n", strings.TrimSuffix(strings.Repeat("0123456789\n", 100), "\n")},
		"a long line in the midst": {"data: a\ndata\ndata: " + long + "\n: comment\nid: 9\ndata:  b\n\n", "a\n\n" + long + "\n b"},
		"two long lines":           {"data: " + long + "\ndata: " + long + "\n\n", long + "\n" + long},
		"a line of one space":      {"data: " + long + "\ndata: \n\n", long + "\n"},
	} {
		for mode, src := range map[string]io.Reader{"whole": strings.NewReader(tc.in + "data: next\n\n"), "byte by byte": iotest.OneByteReader(strings.NewReader(tc.in + "data: next\n\n"))} {
			var got []byte
			r := NewReader(src, 1<<20)
			r.Most, r.Spill = 64, func(p []byte) error { got = append(got, p...); return nil }
			ev, err := r.Next()
			if err != nil || ev.Data != nil || string(got) != tc.want {
				t.Errorf("%s, %s: Next = %q, %v, and %d bytes %.80q, want %d bytes", name, mode, ev.Data, err, len(got), got, len(tc.want))
			}
			if ev, err = r.Next(); err != nil || string(ev.Data) != "next" {
				t.Errorf("%s, %s: after it Next = %q, %v, want %q", name, mode, ev.Data, err, "next")
			}
		}
	}
}

// An event that cannot be spilled, or is too large for that, too, costs itself.
func TestReaderSpillFails(t *testing.T) {
	full := errors.New("disk full")
	for name, tc := range map[string]struct {
		fails error
		in    string
		want  error
	}{
		"no room":        {full, "data: " + strings.Repeat("x", 900), full},
		"too large":      {nil, "data: " + strings.Repeat("x", 5000), ErrTooLarge},
		"a long comment": {nil, ": " + strings.Repeat("x", 900), ErrTooLarge},
	} {
		r := NewReader(strings.NewReader(tc.in+"\n\ndata: next\n\n"), 2000)
		r.Most, r.Spill = 64, func([]byte) error { return tc.fails }
		if _, err := r.Next(); !errors.Is(err, tc.want) {
			t.Errorf("%s: Next = %v, want %v", name, err, tc.want)
		}
		if _, err := r.Skip(64); err != nil {
			t.Errorf("%s: Skip = %v", name, err)
		}
		if ev, err := r.Next(); err != nil || string(ev.Data) != "next" {
			t.Errorf("%s: after it Next = %q, %v, want %q", name, ev.Data, err, "next")
		}
	}
}
