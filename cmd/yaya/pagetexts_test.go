package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/yaya-ai/yaya/internal/invisible"
)

// UI-01: the page shows invisible characters of names and of prose as escapes, the same ones as
// Go. Emoji keep their selectors, and scripts their joiners.
func TestPageInvisible(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	dir, err := filepath.Abs("../../gateway/dashboard/page")
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, in, plain, prose string
	}{
		{"a zero-width space", "a\u200bb", `a\u{200b}b`, `a\u{200b}b`},
		{"a soft hyphen", "a\u00adb", `a\u{ad}b`, `a\u{ad}b`},
		{"a word joiner", "a\u2060b", `a\u{2060}b`, `a\u{2060}b`},
		{"a mark of byte order", "\ufeffa", `\u{feff}a`, `\u{feff}a`},
		{"a variation selector", "a\ufe00b\ufe0fc", `a\u{fe00}b\u{fe0f}c`, `a\u{fe00}b\u{fe0f}c`},
		{"bytes behind an emoji", "❤\ufe0f\ufe0f\U000e0121", "❤\ufe0f" + `\u{fe0f}\u{e0121}`, "❤\ufe0f" + `\u{fe0f}\u{e0121}`},
		{"fillers", "\u3164\u115f\u1160\uffa0\u2800\u034f\u17b4\u180b", `\u{3164}\u{115f}\u{1160}\u{ffa0}\u{2800}\u{34f}\u{17b4}\u{180b}`, `\u{3164}\u{115f}\u{1160}\u{ffa0}\u{2800}\u{34f}\u{17b4}\u{180b}`},
		{"a key", "1\ufe0f\u20e3", "1\ufe0f\u20e3", "1\ufe0f\u20e3"},
		{"a digit with a selector", "1\ufe0f2", `1\u{fe0f}2`, `1\u{fe0f}2`},
		{"a family", "👨\u200d👩", `👨\u{200d}👩`, "👨\u200d👩"},
		{"a heart on fire", "❤\ufe0f\u200d🔥", "❤\ufe0f" + `\u{200d}🔥`, "❤\ufe0f\u200d🔥"},
		{"a Persian word", "می\u200cخواهم", `می\u{200c}خواهم`, "می\u200cخواهم"},
		{"a Latin word", "pass\u200cword", `pass\u{200c}word`, `pass\u{200c}word`},
		{"lines", "a\r\nb\tc", `a\u{d}\u{a}b\u{9}c`, "a\nb\tc"},
	}
	in := make([]string, len(cases))
	for i, c := range cases {
		in[i] = c.in
	}
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	const script = `const { plain, prose } = await import(process.argv[1]);
const all = [];
for (let r = 0; r <= 0x10ffff; r++) if ((r < 0xd800 || r > 0xdfff) && plain(String.fromCodePoint(r)) !== String.fromCodePoint(r)) all.push(r);
console.log(JSON.stringify({ texts: JSON.parse(process.argv[2]).map((s) => [plain(s), prose(s)]), all }));`
	out, err := exec.CommandContext(t.Context(), node, "--input-type=module", "-e", script, "file://"+dir+"/text.js", string(raw)).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Texts [][2]string
		All   []rune
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		if got.Texts[i] != [2]string{c.plain, c.prose} {
			t.Errorf("%s: plain, prose = %q, want %q", c.name, got.Texts[i], []string{c.plain, c.prose})
		}
	}
	page := map[rune]bool{}
	for _, r := range got.All {
		page[r] = true
	}
	for r := range rune(0x110000) {
		if r >= 0xd800 && r <= 0xdfff {
			continue // half of a pair
		}
		if want := invisible.Is(r); page[r] != want {
			t.Errorf("the page escapes %U: %v, and Go: %v", r, page[r], want)
		}
	}
}

// The page writes times with 24 hours, as its lists do, in a locale that has 12; a description has one
// line.
func TestPageTimes(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	dir, err := filepath.Abs("../../gateway/dashboard/page")
	if err != nil {
		t.Fatal(err)
	}
	const script = `Object.defineProperty(globalThis, 'navigator', { value: { language: 'en-US', languages: ['en-US'] } });
const { exact, when, oneLine } = await import(process.argv[1]);
const at = new Date('2026-11-29T15:04:05Z');
console.log([exact(at), when(at, at - 3600e3), oneLine('a\r\n\tb')].join('|'));`
	cmd := exec.CommandContext(t.Context(), node, "--input-type=module", "-e", script, "file://"+dir+"/text.js")
	cmd.Env = append(cmd.Environ(), "TZ=UTC")
	out, err := cmd.Output()
	if want := "11/29/2026, 15:04:05|15:04|a b\n"; err != nil || string(out) != want {
		t.Errorf("got %q, %v, want %q", out, err, want)
	}
}
