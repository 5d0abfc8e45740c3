package cut

import (
	"fmt"
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

// Of much that is written in pieces of any size, both ends are kept, and it is said how much is missing.
func TestEnds(t *testing.T) {
	all := strings.Repeat("0123456789", 50)
	for _, size := range []int{1, 3, 7, 40, 500} {
		for _, n := range []int{0, 5, 20, 21, 40, 41, 500} {
			e := Ends{Most: 20}
			for rest := all[:n]; rest != ""; {
				piece := rest[:min(size, len(rest))]
				if got, err := e.Write([]byte(piece)); got != len(piece) || err != nil {
					t.Fatalf("Write = %d, %v", got, err)
				}
				rest = rest[len(piece):]
			}
			want := all[:n]
			if n > 20 {
				want = fmt.Sprintf("%s\n[… %d of %d bytes omitted …]\n%s", all[:10], n-20, n, all[n-10:n])
			}
			if got := e.String(); got != want || e.Total() != int64(n) {
				t.Errorf("%d bytes in pieces of %d: %q of %d, want %q", n, size, got, e.Total(), want)
			}
		}
	}
	half := Ends{Most: 4}
	_, _ = half.Write([]byte("aéébéé"))
	if got := half.String(); !utf8.ValidString(got) {
		t.Errorf("String = %q, want valid text", got)
	}
}
