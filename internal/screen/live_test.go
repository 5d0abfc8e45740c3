package screen

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/vt"
)

// live is a Live on an emulated terminal, which begins a line after each newline as a real one.
type live struct {
	emu  *vt.Emulator
	live *Live
	raw  bytes.Buffer
}

func newLive(width, height int) *live {
	x := &live{emu: vt.NewEmulator(width, height)}
	x.live = NewLive(x, Palette{}, func() (int, int) { return x.emu.Width(), x.emu.Height() })
	return x
}

func (x *live) Write(b []byte) (int, error) {
	x.raw.Write(b)
	_, err := io.WriteString(x.emu, strings.ReplaceAll(string(b), "\n", "\r\n"))
	return len(b), err
}

// say writes a text in pieces of n characters.
func (x *live) say(t *testing.T, text string, n int) {
	t.Helper()
	for piece := range slices.Chunk([]rune(text), n) {
		if err := x.live.Write(string(piece)); err != nil {
			t.Fatal(err)
		}
	}
}

// text returns all that the terminal has, with the lines that left its screen.
func (x *live) text() string {
	var lines []string
	for y := range x.emu.ScrollbackLen() {
		var b strings.Builder
		for c := 0; c < x.emu.Width(); c++ {
			if cell := x.emu.ScrollbackCellAt(c, y); cell != nil {
				b.WriteString(cell.Content)
			}
		}
		lines = append(lines, b.String())
	}
	lines = append(lines, strings.Split(x.emu.String(), "\n")...)
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

const story = "# One\nA paragraph that is longer than the line, with **bold *and* italic** words, which close late.\n\n- an item\n- another one with more words than fit on a line\n\n```go\nfunc f() {\n\treturn // 漢字\n}\n```\n| a | b |\n|---|--:|\n| 1 | 22 |\n| long cell | 3 |\n\nthe end"

var blanks = regexp.MustCompile(`(?m) +$`)

// A text in pieces ends as if it had come at once, at any size.
func TestLiveEndsAsWhole(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 60}, {30, 40}, {24, 60}} {
		want := strings.Join(Render(Palette{}, story, size[0]-1), "\n")
		want = own.ReplaceAllString(want, "")
		want = blanks.ReplaceAllString(want, "") // they cannot be seen
		for _, n := range []int{1, 2, 7, 1000} {
			x := newLive(size[0], size[1])
			x.say(t, story, n)
			if err := x.live.End(); err != nil {
				t.Fatal(err)
			}
			if got := x.text(); got != want {
				t.Errorf("%v in pieces of %d:\n%s\nwant\n%s", size, n, got, want)
			}
			if at := x.emu.CursorPosition(); at.X != 0 {
				t.Errorf("the cursor ends in column %d, want 0", at.X)
			}
		}
	}
}

// Earlier output stays, a text that leaves the screen is written once, and a second text starts
// from nothing.
func TestLiveKeepsWhatIsAbove(t *testing.T) {
	x := newLive(20, 5)
	if _, err := io.WriteString(x, "above\n"); err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	rows.WriteString("|a|b|\n|-|-|\n")
	for range 12 {
		rows.WriteString("|1|2|\n")
	}
	for _, text := range []string{rows.String(), strings.Repeat("word ", 40), "```\nopen"} {
		x.say(t, text, 3)
		if err := x.live.End(); err != nil {
			t.Fatal(err)
		}
	}
	x.say(t, "*new*", 1)
	got := x.text()
	if !strings.HasPrefix(got, "above\na") || strings.Count(got, "1   ") > 12 || strings.Count(got, "word") != 40 || !strings.HasSuffix(got, "  open\nnew") {
		t.Errorf("the terminal shows\n%s", got)
	}
}

// After a resize no line is lost, and the rest is as wide as the terminal.
func TestLiveResize(t *testing.T) {
	x := newLive(60, 20)
	x.say(t, "whole\nthis line is being written while the ", 4)
	x.emu.Resize(25, 20)
	x.say(t, "terminal becomes another one\nlast", 4)
	if err := x.live.End(); err != nil {
		t.Fatal(err)
	}
	if got := x.text(); !strings.HasPrefix(got, "whole\n") || !strings.HasSuffix(got, "terminal becomes another\none\nlast") {
		t.Errorf("the terminal shows\n%s", got)
	}
}

// Nothing of the text's own reaches the terminal as a control sequence.
func TestLiveIsSafe(t *testing.T) {
	x := newLive(40, 10)
	x.say(t, "a\x1b]52;c;aGk=\x07\x1b[2J\u202e\u009b1m\r\nb\rc", 1)
	if err := x.live.End(); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"\x1b]", "\x1b[2J", "\u202e", "\u009b", "\a"} {
		if strings.Contains(x.raw.String(), bad) {
			t.Errorf("the terminal got %q", bad)
		}
	}
	if got := x.text(); !strings.HasPrefix(got, `a\u{1b}]52;c;aGk=\u{7}`) || !strings.HasSuffix(got, `b\u{d}c`) {
		t.Errorf("the terminal shows\n%s", got)
	}
}
