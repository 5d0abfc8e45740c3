package upstream

import (
	"fmt"
	"slices"
	"testing"
)

// The last denials are kept, each once, the newest first.
func TestRecentDenials(t *testing.T) {
	var d denials
	if got := d.recent(); len(got) != 0 {
		t.Errorf("got %v before the first", got)
	}
	for i := range lastDenied + 3 {
		d.note(fmt.Sprint(i), Denial{What: fmt.Sprint(i)})
	}
	d.note(fmt.Sprint(lastDenied), Denial{What: fmt.Sprint(lastDenied)})
	var got []string
	for _, last := range d.recent() {
		got = append(got, last.What)
	}
	want := []string{"8", "10", "9", "7", "6", "5", "4", "3"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if last := d.since(0); last != "7; 9; 10; 8" {
		t.Errorf("the last ones are %q, want 4 of them", last)
	}
}
