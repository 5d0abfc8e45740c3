package screen

import (
	"fmt"
	"image/color"
	"math"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// named writes the styles by name, so that a test can be read.
var named = strings.NewReplacer(Bold, "<b>", Faint, "<dim>", Italic, "<i>", Underline, "<u>", Strike, "<s>", Reset, "</>",
	red, "<red>", green, "<green>", magenta, "<magenta>")

func TestMarkdown(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"text", "a *b* **c** ***d*** ~~e~~ `f`", "a <i>b</> <b>c</> <b><i>d</> <s>e</> <magenta>f</>"},
		{"signs that mean themselves", `2 * 3 * 4, snake_case_name, a \*b\*, *open, **, C#`, "2 * 3 * 4, snake_case_name, a\n*b*, *open, **, C#"},
		{"code in a sentence", "use ``a`b`` and `*x*`, `open", "use <magenta>a`b</> and <magenta>*x*</>, `open"},
		{"headings", "# One\n\n### Two ##\n#hash", "<b><magenta>One</>\n\n<b><magenta>Two</>\n#hash"},
		{"lists", "- a\n  - b\n1. c\n- [ ] d\n- [x] e", "<magenta>•</> a\n  <magenta>•</> b\n<magenta>1.</> c\n<magenta>☐</> d\n<magenta>☑</> e"},
		{"a list that is wrapped", "- aaaa bbbb cccc dddd eeee ffff gggg hhhh", "<magenta>•</> aaaa bbbb cccc dddd eeee ffff\n  gggg hhhh"},
		{"quotes", "> a\n> > b\n\nc", "<dim>│ </>a\n<dim>│ │ </>b\n\nc"},
		{"a rule", "a\n\n---\nb", "a\n\n<dim>" + strings.Repeat("─", 32) + "</>\nb"},
		{"a link", "[yaya](https://a.example/x) and <https://b.example>.", "<u>yaya</><dim> (https://a.example/x)</> and\n<u>https://b.example</>."},
		{"a link that lies", "[https://good.example](https://evil.example)", "<u>https://good.example</>\n<dim>(https://evil.example)</>"},
		{"an image, a bare address", "![a](b.png) https://c.example/d.", "<u>a</><dim> (b.png)</> <u>https://c.example/d</>."},
		{"brackets", "a[i](x) [b] [c][d]", "a<u>i</><dim> (x)</> [b] [c][d]"},
		{"entities", "&lt;b&gt; &#27;[2J &bogus; AT&T", `<b> \u{1b}[2J &bogus; AT&T`},
		{"code", "```go\nfunc f() { return \"x\" } // no\n```\nend", "  <magenta>func</> f() { <magenta>return</> <green>\"x\"</> } <dim>// no</>\nend"},
		{"code without a language", "~~~\na  b\n\n*c*\n~~~", "  a  b\n  \n  *c*"},
		{"code of several lines", "```py\nx = \"\"\"a\nb\"\"\" # c\n```", "  x = <green>\"\"\"a</>\n  <green>b\"\"\"</> <dim># c</>"},
		{"code in a list", "- a\n  ```sh\n  ls # x\n  ```\n- b", "<magenta>•</> a\n  ls <dim># x</>\n<magenta>•</> b"},
		{"code in a quote ends with it", "> ```\n> a\nb", "<dim>│ </>  a\nb"},
		{"a patch", "```diff\n@@ -1 +1 @@\n-a\n+b\n c\n```", "  <dim>@@ -1 +1 @@</>\n  <red>-a</>\n  <green>+b</>\n   c"},
		{"indented code", "a\n\n    x = 1\nb", "a\n\n  <magenta>x = 1</>\nb"},
		{"a table", "| a | b |\n|---|--:|\n| 1 | 22 |\n| x\\|y | `z` |\nend", "<b>a</>  <dim> │ </> <b>b</>\n<dim>────┼───</>\n1  <dim> │ </>22\nx|y<dim> │ </> <magenta>z</>\nend"},
		{"a bar in a sentence", "a | b\nc | d", "a | b\nc | d"},
		{"a table in a quote", "> a|b\n> -|-\n> 1|2", "<dim>│ </><b>a</><dim> │ </><b>b</>\n<dim>│ </><dim>──┼──</>\n<dim>│ </>1<dim> │ </>2"},
		{"a table that is too wide", "| a | b |\n|---|---|\n| one two three four | five six seven eight |", "<b>a</>             <dim> │ </><b>b</>\n<dim>───────────────┼────────────────</>\none two three <dim> │ </>five six seven\nfour          <dim> │ </>eight"},
		{"wide characters", "漢字漢字漢字漢字漢字漢字漢字漢字漢字", "漢字漢字漢字漢字漢字漢字漢字漢字\n漢字"},
		{"emoji", "a 👨‍👩‍👧 👍🏽 ❤️ 🇫🇷 é\u0301", "a 👨👩👧 👍 ❤ 🇫🇷 é\u0301"},
		{"joiners that letters need", "می\u200cخواهم क\u200dष", "می\u200cخواهم क\u200dष"},
		{"what nobody sees behind emoji", "字\u200d\u200d 👍\U0001f3fd\U0001f3fd a\U0001f3fb", "字" + `\u{200d}` + " 👍\U0001f3fd a\U0001f3fb"},
		{"joiners without a letter", "\u200ca \u200d b\u200cc", `\u{200c}a  bc`},
		{"many joiners", "م" + strings.Repeat("\u200c", 3), "م\u200c" + `\u{200c}\u{200c}`},
		{"soft hyphens, variants", "Wort\u00adteil b\ufe0f 葛\U000e0100\U000e0101", `Wortteil b\u{fe0f} 葛\u{e0101}`},
		{"blanks that are not seen", "a\u200bb\ufeffc\U000e0041", `a\u{200b}b\u{feff}c\u{e0041}`},
		{"a table with joiners", "|می\u200cخ|b|\n|-|-|\n|cccc|d|", "<b>می\u200cخ</> <dim> │ </><b>b</>\n<dim>─────┼──</>\ncccc<dim> │ </>d"},
		{"spaces of typesetting", "10\u00a0km", "10 km"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := named.Replace(strings.Join(Render(Colours, c.in, 32), "\n"))
			if got != c.want {
				t.Errorf("Render(%q) =\n%s\nwant\n%s", c.in, got, c.want)
			}
		})
	}
}

// Hostile text: nothing acts on the terminal, and each character that would is shown.
func TestNothingActs(t *testing.T) {
	evil := "\x1b]52;c;aGk=\x07 \x1b[2J \x1b]0;t\x1b\\ \u009b31m \u202ertl \u2066 \u200b \x00 \x7f \u200d \u3164 b\ufe0f \U000e0100 \r" + strings.Repeat("\u0301", 50)
	for _, around := range []string{"%s", "# %s", "- %s", "> %s", "**%s**", "`%s`", "[%s](x)", "[x](%s)", "```\n%s\n```", "```go\n\"%s\n```", "|%s|b|\n|-|-|\n|%[1]s|c|", "<https://%s>", "```%s\nx"} {
		for _, l := range Render(Colours, fmt.Sprintf(around, evil), 40) {
			safe(t, l, 40)
		}
	}
	got := Clean(evil, 1000)
	for _, want := range []string{`\u{1b}]52;c;`, `\u{9b}31m`, `\u{202e}rtl`, `\u{200b}`, `\u{0}`, `\u{7f}`, `\u{3164}`, `\u{fe0f}`, `\u{e0100}`} {
		if !strings.Contains(got, want) {
			t.Errorf("Clean shows %q, want %q in it", got, want)
		}
	}
}

// Questions show every character that is not seen; titles show those that are not part of writing.
func TestExactly(t *testing.T) {
	const text = "می\u200cخ \u00ad e\u200dm b\ufe0f 字\u200d\u200d"
	const want = `می\u{200c}خ \u{ad} e\u{200d}m b\u{fe0f} 字\u{200d}\u{200d}`
	for name, got := range map[string]string{
		"Exactly": strings.Join(Exactly(Palette{}, text, 80), "\n"), "Lines": strings.Join(Lines(text, 80), "\n"), "Clean": Clean(text, 80),
	} {
		if got != want {
			t.Errorf("%s(%q) = %q, want %q", name, text, got, want)
		}
	}
	if got, want := strings.Join(Lines("rm a\U0001f3fb 👍\U0001f3fd", 80), "\n"), `rm a\u{1f3fb} 👍\u{1f3fd}`; got != want {
		t.Errorf("Lines shows skin tones as %q, want %q", got, want)
	}
	const title = "می\u200cخ \u202e\u200b👨\u200d👩 Wort\u00adteil\x1b"
	for name, got := range map[string]string{"CleanProse": CleanProse(title, 80), "Prose": strings.Join(Prose(title, 80), "\n")} {
		if want := "می\u200cخ \\u{202e}\\u{200b}👨👩 Wortteil\\u{1b}"; got != want {
			t.Errorf("%s(%q) = %q, want %q", name, title, got, want)
		}
	}
}

var own = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// safe checks a line: it is not too wide, has no control characters but those of styles, and
// ends its styles.
func safe(t *testing.T, line string, width int) {
	t.Helper()
	styles := own.FindAllString(line, -1)
	if len(styles) > 0 && styles[len(styles)-1] != Reset {
		t.Errorf("%q does not end its style", line)
	}
	bare := own.ReplaceAllString(line, "")
	if w := ansi.StringWidth(bare); w > width {
		t.Errorf("%q is %d wide, want at most %d", bare, w, width)
	}
	for _, r := range bare {
		if !unicode.IsPrint(r) && r != '\u200c' && r != '\u200d' {
			t.Errorf("the line has %U: %q", r, line)
			return
		}
	}
}

// The work grows with the length of a text alone: with the square of it, each of these would take
// a quarter of an hour. A line with markup is short, and there are many.
func TestHugeLines(t *testing.T) {
	const size = 1 << 20
	texts := map[string]string{
		"a line":  strings.Repeat("a", size),
		"wide":    strings.Repeat("漢", size/3),
		"marks":   strings.Repeat("\u0301", size/2),
		"spaces":  "a" + strings.Repeat(" ", size),
		"an item": "- " + strings.Repeat("a", size),
		"code":    "```go\n" + strings.Repeat("/*", size/2),
		"a table": "|a|b|\n|-|-|\n|" + strings.Repeat("a b ", size/4) + "|c|",
		"quotes":  strings.Repeat("> ", size/2),
		"fences":  strings.Repeat("```", size/3),
		"rows":    strings.Repeat("|a|b\n", size/50),
		"lists":   strings.Repeat("  - a\n", size/60),
	}
	for _, piece := range []string{"[", "[](", "![a](b", "*a ", "**a", "_a", "`", "``a`", "<http://", "http://", "ahttp://", "&"} {
		texts[piece] = strings.Repeat(piece, maxMarkup/len(piece))
	}
	for name, text := range texts {
		for _, l := range Render(Colours, text, 40) {
			if ansi.StringWidth(l) > 40 {
				t.Fatalf("%s: a line is wider than 40: %.100q", name, l)
			}
		}
	}
}

// A line that is being written is shown without a trace in what comes after.
func TestPeekChangesNothing(t *testing.T) {
	const text = "# a\n- b\n```go\n/* x\ny */ z\n```\n|a|b|\n|-|-|\n|1|2|\n\nend **b**\n"
	m := New(Colours, 40)
	var got []string
	for line := range strings.SplitSeq(text, "\n") {
		for i := range line {
			m.Peek(line[:i])
		}
		got = append(got, m.Line(line)...)
	}
	got = append(got, m.End()...)
	if want := Render(Colours, text, 40); strings.TrimSpace(strings.Join(got, "\n")) != strings.Join(want, "\n") {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
	if got := strings.Join(New(Palette{}, 40).Peek("a **b"), "\n"); got != "a **b" {
		t.Errorf("an unfinished line is %q, want %q", got, "a **b")
	}
}

// The colours are base colours that can be read on black and on white, as xterm has them (WCAG 2's
// contrast). Its green is the palest; people who have white terminals have a darker one.
func TestContrast(t *testing.T) {
	xterm := map[string]color.Color{red: color.RGBA{0xcd, 0, 0, 255}, green: color.RGBA{0, 0xcd, 0, 255}, magenta: color.RGBA{0xcd, 0, 0xcd, 255}}
	for _, style := range []string{Colours.Accent, Colours.Good, Colours.Bad, Colours.Keyword, Colours.Literal} {
		fg := xterm[style]
		if fg == nil {
			t.Fatalf("%q is not one of the colours that are readable on both", style)
		}
		for _, bg := range []color.Color{color.Black, color.White} {
			if got := contrast(fg, bg); got < 2 {
				t.Errorf("%q on %v has a contrast of %.1f, want at least 2", style, bg, got)
			}
		}
	}
}

func contrast(a, b color.Color) float64 {
	light := func(c color.Color) float64 {
		r, g, b, _ := c.RGBA()
		part := func(v uint32) float64 {
			if f := float64(v) / 65535; f > 0.04045 {
				return math.Pow((f+0.055)/1.055, 2.4)
			} else {
				return f / 12.92
			}
		}
		return 0.2126*part(r) + 0.7152*part(g) + 0.0722*part(b)
	}
	x, y := light(a), light(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"# a **b** `c` [d](e)", "|a|b|\n|-|-|\n|c|d|", "> > ```go\n> > x\ny", "- 1\n   - 2\n\n     ~~~\n x", "\u202e\x1b[2J\u0301👨‍👩🇫🇷", "[[[[(((", "***_~~`"} {
		f.Add(s, 20)
	}
	f.Fuzz(func(t *testing.T, s string, width int) {
		if len(s) > 4096 {
			return
		}
		width = 10 + int(uint(width)%200)
		for _, l := range Render(Colours, s, width) {
			safe(t, l, width)
		}
		for _, l := range Lines(s, width) {
			safe(t, l, width)
		}
	})
}
