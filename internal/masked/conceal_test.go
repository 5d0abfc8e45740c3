package masked

import (
	"bytes"
	"encoding/base64"
	hexcode "encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
)

const canary = `CANARY+q7/Zt3"Xw-9\é kLm`

func escapedAll(s string) string {
	var b strings.Builder
	for _, r := range s {
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}

func percentAll(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02x", s[i])
	}
	return b.String()
}

func quoted(t testing.TB, s string) string {
	t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw[1 : len(raw)-1])
}

// waysOf is the canary in all the ways that are hidden.
func waysOf(t testing.TB) map[string]string {
	t.Helper()
	raw := []byte(canary)
	m := map[string]string{
		"raw": canary, "backwards": backwards(canary),
		"json": quoted(t, canary), "json in json": quoted(t, quoted(t, canary)), "json in json in json": quoted(t, quoted(t, quoted(t, canary))),
		"escapes": escapedAll(canary), "escapes in json": quoted(t, escapedAll(canary)),
		"query": url.QueryEscape(canary), "path": url.PathEscape(canary), "percent": percentAll(canary), "percent twice": url.QueryEscape(percentAll(canary)),
		"percent in escapes": escapedAll(percentAll(canary)[:12]) + percentAll(canary)[12:],
		"hex":                fmt.Sprintf("%x", raw), "HEX": fmt.Sprintf("%X", raw),
	}
	for shift := range 3 {
		before := append(bytes.Repeat([]byte("~"), shift), raw...)
		for after := range 3 {
			b := append(slices.Clone(before), bytes.Repeat([]byte("?"), after)...)
			m[fmt.Sprintf("base64 %d %d", shift, after)] = base64.StdEncoding.EncodeToString(b)
			m[fmt.Sprintf("base64url %d %d", shift, after)] = base64.RawURLEncoding.EncodeToString(b)
		}
	}
	return m
}

// bare is a text as it reads without any encoding that is looked into.
func bare(text string) string {
	all := text
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
		for _, word := range strings.FieldsFunc(text, func(r rune) bool { return value64(byte(r)) < 0 && r != '=' }) {
			if b, err := enc.DecodeString(word); err == nil {
				all += " " + string(b)
			}
		}
	}
	return all
}

func TestConceal(t *testing.T) {
	s := new(Secrets)
	s.Declare(canary)
	for name, how := range waysOf(t) {
		t.Run(name, func(t *testing.T) {
			got := s.ConcealString("before " + how + " behind")
			if strings.Contains(got, how) || strings.Contains(bare(got), "CANARY") {
				t.Errorf("ConcealString of %q = %q, the value is shown", how, got)
			}
			if !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " behind") {
				t.Errorf("ConcealString of %q = %q, want what is around to stay", how, got)
			}
		})
	}
	if got := s.String("x=" + fmt.Sprintf("%x", canary)); strings.Contains(got, "43414e") {
		t.Errorf("String shows a value in hexadecimal: %q", got)
	}
}

// Encoded data keeps its length and can be decoded: a picture with the value in it
// stays a valid picture.
func TestConcealKeepsBase64(t *testing.T) {
	s := new(Secrets)
	s.Declare(canary)
	for shift := range 7 {
		for after := range 7 {
			blob := make([]byte, 0, 1<<10)
			for range shift {
				blob = append(blob, byte(rand.IntN(256)))
			}
			blob = append(blob, canary...)
			for range after {
				blob = append(blob, byte(rand.IntN(256)))
			}
			want := bytes.ReplaceAll(slices.Clone(blob), []byte(canary), bytes.Repeat([]byte("*"), len(canary)))
			for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
				doc := `{"data":"` + enc.EncodeToString(blob) + `"}`
				out := s.ConcealJSON([]byte(doc))
				var got struct{ Data string }
				if err := json.Unmarshal(out, &got); err != nil {
					t.Fatalf("ConcealJSON(%s) = %s: %v", doc, out, err)
				}
				if b, err := enc.DecodeString(got.Data); err != nil || !bytes.Equal(b, want) {
					t.Fatalf("with %d bytes before and %d behind: %q, %v, want %q", shift, after, b, err, want)
				}
			}
		}
	}
}

// It does so beside escapes, too: the same encoded value stands in each decoded text, and with
// many of them the order of equal places is not that in which they were found.
func TestConcealKeepsFormBesideEscapes(t *testing.T) {
	for _, beside := range []string{`a\\x`, `%2541`, `&amp;#65;`, `%2541 &amp;#65; \\x`, `%2541 &amp;#65; \\\\x`, `%2541 \u0026amp;#65; \\\\x`} {
		for size := Shortest; size < 40; size++ {
			value := "canary-Value-09azAZ_qwertzuiopQWERTZUIOP"[:size]
			s := new(Secrets)
			s.Declare(value)
			for shift := range 3 {
				doc := func(is string) string {
					blob := []byte("\x89PNG" + strings.Repeat("x", shift) + is + "yyyyyy")
					return `{"text":"` + beside + `","data":"` + base64.StdEncoding.EncodeToString(blob) + `","more":"` + hexcode.EncodeToString(blob) + `"}`
				}
				if got, want := string(s.ConcealJSON([]byte(doc(value)))), doc(strings.Repeat("*", size)); got != want {
					t.Errorf("value of %d bytes, shift %d: ConcealJSON(%s) = %s, want %s", size, shift, doc(value), got, want)
				}
			}
		}
	}
}

func TestConcealJSON(t *testing.T) {
	for _, c := range []struct{ name, value, doc, want string }{
		{"a string", "hunter2hunter2", `{"a":"x hunter2hunter2 y"}`, `{"a":"x **** y"}`},
		{"the name of a member", "hunter2hunter2", `{"hunter2hunter2":1}`, `{"****":1}`},
		{"a number", "918273645546", `{"pin":918273645546,"x":[-918273645546,1]}`, `{"pin":"****","x":["****",1]}`},
		{"an escape before it", "nsecret123", `{"a":"x\nsecret123"}`, `{"a":"x****"}`},
		{"half of an escape before it", "e9secret123", `{"a":"\u00e9secret123"}`, `{"a":"****"}`},
		{"a backslash at its end", `secret123\`, `{"a":"secret123\\n"}`, `{"a":"****n"}`},
		{"over the end of a string", `secret1","x":"y`, `{"a":"secret1","x":"y"}`, `{"a":"****","*":"*"}`},
		{"a document in a string", "hunter2hunter2", `{"a":"{\"b\":\"hunter2hunter2\"}"}`, `{"a":"{\"b\":\"****\"}"}`},
		{"nothing", "hunter2hunter2", `{"a":"hunter2hunter"}`, `{"a":"hunter2hunter"}`},
		{"a name that says secret", "hunter2hunter2", `{"password":"another"}`, `{"password":"another"}`},
		{"a form of a token", "hunter2hunter2", `{"a":"ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"}`, `{"a":"ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := new(Secrets)
			s.Declare(c.value)
			got := s.ConcealJSON([]byte(c.doc))
			if string(got) != c.want {
				t.Errorf("ConcealJSON(%s) = %s, want %s", c.doc, got, c.want)
			}
			if !json.Valid(got) {
				t.Errorf("ConcealJSON(%s) = %s is not JSON", c.doc, got)
			}
		})
	}
}

// FuzzConcealJSON: JSON stays JSON, and the result shows no value.
func FuzzConcealJSON(f *testing.F) {
	f.Add("hunter2hunter2", `{"a":"hunter2hunter2","b":[1,"\u0068unter2hunter2"]}`)
	f.Add(`\","x":"y`, `{"a":"\\\",\"x\":\"y","x":"y"}`)
	f.Fuzz(func(t *testing.T, value, doc string) {
		s := new(Secrets)
		s.Declare(value)
		got := s.ConcealJSON([]byte(doc))
		if json.Valid([]byte(doc)) && !json.Valid(got) {
			t.Errorf("with %q, ConcealJSON(%q) = %q is not JSON", value, doc, got)
		}
		if len(got) > len(doc) {
			t.Errorf("with %q, ConcealJSON(%q) = %q is longer", value, doc, got)
		}
		s.Stream().Next(doc)
	})
}

func TestDeclare(t *testing.T) {
	for _, c := range []struct{ name, value string }{
		{"too short", "1234567"}, {"a mask", "x****xxxxx"}, {"a line", "----------------"},
	} {
		s := new(Secrets)
		s.Declare(c.value)
		if s.Declared() {
			t.Errorf("%s: %q is declared", c.name, c.value)
		}
	}
	var none *Secrets
	if got := none.ConcealString("a text"); got != "a text" || none.Declared() {
		t.Errorf("without secrets: %q", got)
	}
	s := new(Secrets)
	s.Learn("guessed-value-1")
	if got := s.ConcealString("guessed-value-1"); got != "guessed-value-1" {
		t.Errorf("ConcealString hides what was only learnt: %q", got)
	}
	s.Declare("-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END KEY-----")
	if got := s.ConcealString("| AQEFAASCBKcwggSjAgEAAoIB |"); got != "| **** |" {
		t.Errorf("a line of a value of several lines: %q", got)
	}
}

// A value is found wherever an escape of it stands, however far from the last one.
func TestConcealFar(t *testing.T) {
	s := new(Secrets)
	s.Declare(canary)
	for _, n := range []int{0, 1, around - 10, around, 2*around - 3, 5*around + 1} {
		text := strings.Repeat("x", n) + escapedAll("CA") + percentAll("z") + strings.Repeat("y", n) + escapedAll(canary) + strings.Repeat("z", n)
		if got := s.ConcealString(text); strings.Contains(got, escapedAll(canary)[6:]) || !strings.Contains(got, Mask) {
			t.Errorf("with %d bytes around: the value is shown", n)
		}
	}
}

func TestStream(t *testing.T) {
	s := new(Secrets)
	s.Declare(canary, canary[:12]) // one begins with the other
	for name, how := range waysOf(t) {
		text := "before " + how + " behind"
		for i := range len(text) + 1 {
			for _, j := range []int{i, min(i+1, len(text)), (i + len(text)) / 2} {
				st := s.Stream()
				got := st.Next(text[:i]) + st.Next(text[i:j]) + st.Next(text[j:]) + st.End()
				if strings.Contains(got, how) || strings.Contains(bare(got), "CANARY") {
					t.Fatalf("%s: %q | %q | %q = %q, the value is shown", name, text[:i], text[i:j], text[j:], got)
				}
				if !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " behind") {
					t.Fatalf("%s: %q | %q | %q = %q, want what is around to stay", name, text[:i], text[i:j], text[j:], got)
				}
			}
		}
		var got strings.Builder
		st := s.Stream()
		for i := range len(text) {
			got.WriteString(st.Next(text[i : i+1]))
		}
		got.WriteString(st.End())
		if strings.Contains(got.String(), how) || strings.Contains(bare(got.String()), "CANARY") {
			t.Errorf("%s, byte by byte: %q, the value is shown", name, got.String())
		}
	}
}

// Text without a value passes unchanged, and text that is held back arrives at the end.
func TestStreamPasses(t *testing.T) {
	s := new(Secrets)
	s.Declare(canary)
	for _, text := range []string{"CANAR", "CANARY+q7/Zu and CANA", `a \ b % \u00 100% \\`, "plain", "", "é\xff\xfe"} {
		for i := range len(text) + 1 {
			st := s.Stream()
			if got := st.Next(text[:i]) + st.Next(text[i:]) + st.End(); got != text {
				t.Errorf("got %q | %q = %q, want %v", text[:i], text[i:], got, text)
			}
		}
	}
	st := s.Stream()
	if got := st.Next(canary[:14]) + st.End(); got != Mask {
		t.Errorf("most of a value at the end: %q, want %q", got, Mask)
	}
	var none *Stream
	if got := none.Next("x") + none.End(); got != "x" {
		t.Errorf("a nil stream: %q", got)
	}
}

func TestJoint(t *testing.T) {
	s := new(Secrets)
	s.Declare(canary)
	for name, how := range waysOf(t) {
		for i := 1; i < len(how); i++ {
			j := s.Joint()
			first, second := j.Next("step "+how[:i]), j.Next(how[i:]+" done")
			if strings.Contains(first+second, how) || strings.Contains(bare(first[min(5, len(first)):]+second), "CANARY") {
				t.Fatalf("%s: %q, %q: the value is shown", name, first, second)
			}
			if !strings.HasPrefix(first, "step ") || !strings.HasSuffix(second, " done") {
				t.Fatalf("%s: %q, %q: want what is around to stay", name, first, second)
			}
		}
	}
	j := s.Joint()
	for _, text := range []string{"50 % of C", "A", "N", "", "done"} {
		if got := j.Next(text); got != text {
			t.Errorf("Next(%q) = %q", text, got)
		}
	}
}

func BenchmarkConceal(b *testing.B) {
	prose, err := json.Marshal(strings.Repeat("The quick brown fox, \"jumps\" over\n\tthe lazy dog: 100 % of /a/b?c=d.\n", 1<<14))
	if err != nil {
		b.Fatal(err)
	}
	blob := make([]byte, 1<<20)
	for i := range blob {
		blob[i] = byte(rand.Uint32())
	}
	for _, text := range []struct {
		name string
		doc  []byte
	}{
		{"prose", prose}, {"base64", []byte(`"` + base64.StdEncoding.EncodeToString(blob) + `"`)}, {"small", []byte(`{"content":[{"type":"text","text":"hello, world\n"}],"isError":false}`)},
	} {
		for _, values := range []int{0, 3, 100} {
			b.Run(fmt.Sprintf("%s/%d values", text.name, values), func(b *testing.B) {
				s := new(Secrets)
				for i := range values {
					s.Declare(fmt.Sprintf("sk-%d-%032x", i, rand.Uint64()))
				}
				b.SetBytes(int64(len(text.doc)))
				b.ReportAllocs()
				for b.Loop() {
					if got := s.ConcealJSON(text.doc); len(got) != len(text.doc) {
						b.Fatal("something was hidden")
					}
				}
			})
		}
	}
}
