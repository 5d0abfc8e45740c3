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
	if len(got) != maxLines || got[0].ID != 11 || got[0].Text != "line 11" || got[len(got)-1].ID != maxLines+10 {
		t.Errorf("%d lines, from %+v", len(got), got[0])
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
	s := Splitter{Said: func(l string) { got = append(got, l) }}
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
