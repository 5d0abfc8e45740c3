package cut

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCut(t *testing.T) {
	for name, c := range map[string]struct {
		s                 string
		n                 int
		bytes, text, line string
	}{
		"empty":                  {"", 0, "", "", ""},
		"short":                  {"abc", 5, "abc", "abc", "abc"},
		"as long as may be":      {"abcde", 5, "abcde", "abcde", "abcde"},
		"too long":               {"abcdef", 5, "abcde", "abcde…", "abcd…"},
		"in a character":         {"aäöü", 4, "aä", "aä…", "aäöü"},
		"in one of four bytes":   {"a😀b", 3, "a", "a…", "a😀b"},
		"in the first":           {"😀", 3, "", "…", "😀"},
		"nothing":                {"abc", 0, "", "…", "…"},
		"less than nothing":      {"abc", -1, "", "…", "…"},
		"white space":            {" a\n\tb ", 9, " a\n\tb ", " a\n\tb ", "a b"},
		"not UTF-8 from the end": {"\x80\x80\x80\x80", 2, "", "…", "\ufffd…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Bytes(c.s, c.n); got != c.bytes {
				t.Errorf("Bytes(%q, %d) = %q, want %q", c.s, c.n, got, c.bytes)
			}
			if got := Text(c.s, c.n); got != c.text {
				t.Errorf("Text(%q, %d) = %q, want %q", c.s, c.n, got, c.text)
			}
			if got := Line(c.s, c.n); got != c.line {
				t.Errorf("Line(%q, %d) = %q, want %q", c.s, c.n, got, c.line)
			}
		})
	}
}

// Bytes that do not begin a character stay: they do not become one.
func TestWholeOfOtherBytes(t *testing.T) {
	for _, s := range []string{"", "a", "a\x80", "\x80\x80\x80\x80", "a\xff", "ä\xc3\x28"} {
		if got := Whole([]byte(s)); string(got) != s {
			t.Errorf("Whole(%q) = %q, want all of it", s, got)
		}
	}
}

// Wherever a valid text is cut, what is left is valid and no longer than was allowed.
func TestNoHalves(t *testing.T) {
	s := strings.Repeat("aä→😀 ", 5)
	for n := range len(s) + 1 {
		b, l := Bytes(s, n), Line(s, n)
		if w := Whole([]byte(s[:n])); string(w) != b {
			t.Errorf("Whole of %d bytes = %q, want %q", n, w, b)
		}
		if !utf8.ValidString(b) || len(b) > n || !strings.HasPrefix(s, b) || n-len(b) >= utf8.UTFMax {
			t.Errorf("Bytes(…, %d) = %q, %d bytes", n, b, len(b))
		}
		if !utf8.ValidString(l) || utf8.RuneCountInString(l) > max(n, 1) {
			t.Errorf("Line(…, %d) = %q", n, l)
		}
	}
}
