package linelog

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestRing(t *testing.T) {
	var r Ring
	for i := range maxLines + 10 {
		r.Add("stderr", "", fmt.Sprint("line ", i+1))
	}
	got := r.After(0, maxLines*2)
	if want := "10 lines that came before this were dropped: yaya keeps the last 2000 lines of a server, and 256 KiB"; got[0].ID != 10 || got[0].Stream != "yaya" || got[0].Text != want {
		t.Errorf("the first line is %+v, want %q", got[0], want)
	}
	if got = got[1:]; len(got) != maxLines || got[0].ID != 11 || got[0].Text != "line 11" || got[len(got)-1].ID != maxLines+10 {
		t.Errorf("got %d lines, from %+v, want %d from 11 on", len(got), got[0], maxLines)
	}
	for name, c := range map[string]struct {
		id   int64
		n    int
		want string // of the first line
	}{
		"a follower that has seen some of what was dropped": {9, maxLines, "1 line that came before this was dropped: "},
		"a follower that has seen all of it":                {10, maxLines, "line 11"},
		"one that asks for fewer":                           {0, maxLines - 1, "line 12"},
	} {
		if got := r.After(c.id, c.n); !strings.HasPrefix(got[0].Text, c.want) {
			t.Errorf("%s: After(%d, %d) begins with %q, want %q", name, c.id, c.n, got[0].Text, c.want)
		}
	}
	if got := r.After(maxLines+7, 100); len(got) != 3 || got[0].ID != maxLines+8 {
		t.Errorf("After = %+v, want 3 lines", got)
	}
	if got := r.After(0, 2); len(got) != 2 || got[1].ID != maxLines+10 {
		t.Errorf("After = %+v, want the last 2", got)
	}
	if got := r.After(1<<40, 2); len(got) != 0 {
		t.Errorf("After what has not been said: %+v", got)
	}
	news := r.News()
	r.Add("log", "warning", strings.Repeat("x", 1<<20))
	<-news
	if got := r.After(maxLines+10, 1)[0]; len(got.Text) > maxLine+len("…") || got.Level != "warning" {
		t.Errorf("a line of %d bytes is kept, level %q", len(got.Text), got.Level)
	}
	for range 200 {
		r.Add("stderr", "", strings.Repeat("y", maxLine))
	}
	if r.size > maxBytes {
		t.Errorf("%d bytes are kept, want at most %d", r.size, maxBytes)
	}
}

func TestSplitter(t *testing.T) {
	var got []string
	s := Splitter{Line: func(l string) { got = append(got, l) }}
	for _, p := range []string{"one\ntw", "o\r\n\n  \n", "thr", "ee\nfour", "\n", strings.Repeat("x", maxLine), strings.Repeat("x", 1<<20), "y\nlast"} {
		if n, err := s.Write([]byte(p)); n != len(p) || err != nil {
			t.Errorf("Write = %d, %v", n, err)
		}
	}
	s.End()
	s.End()
	want := []string{"one", "two", "three", "four", strings.Repeat("x", maxLine+1), "last"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %.80q, want %.80q", got, want)
	}
	if cap(s.rest) > 4*maxLine {
		t.Errorf("%d bytes are kept for a line", cap(s.rest))
	}
}
