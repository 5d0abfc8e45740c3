package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestLine(t *testing.T) {
	plain := []byte(`{"a":"\n"}`)
	if got := Line(plain); &got[0] != &plain[0] {
		t.Error("a line was copied")
	}
	in := []byte("{\r\n\t\"a\":\r[1,\n2]}")
	before := string(in)
	got := Line(in)
	if bytes.ContainsAny(got, "\r\n") || string(in) != before {
		t.Errorf("Line(%q) = %q, want one line, and the input unchanged (%q)", before, got, in)
	}
	var a, b bytes.Buffer
	if err := errors.Join(json.Compact(&a, in), json.Compact(&b, got)); err != nil || a.String() != b.String() {
		t.Errorf("%s, not %s: %v", b.String(), a.String(), err)
	}
}

// HT-14, HT-15, R13: one strict meaning or a refusal.
func TestCheckIsStrict(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	wide := func(n int) string {
		var b strings.Builder
		b.WriteByte('{')
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"k%d":0`, i)
		}
		return b.String() + "}"
	}
	for _, tc := range []struct {
		name, in string
		ok       bool
	}{
		{"scalar", `1`, true},
		{"spaces around", " \t\r\n{} ", true},
		{"empty", ``, false},
		{"trailing data", `{} x`, false},
		{"two documents", `{}{}`, false},
		{"byte order mark", "\ufeff{}", false},
		{"trailing comma in array", `[1,]`, false},
		{"trailing comma in object", `{"a":1,}`, false},
		{"comment", `{}/**/`, false},
		{"leading zero", `01`, false},
		{"plus sign", `+1`, false},
		{"bare fraction", `.5`, false},
		{"NaN", `NaN`, false},
		{"huge exponent is only text", `1e400`, true},
		{"number at the limit", strings.Repeat("1", MaxNumberText), true},
		{"number above the limit", strings.Repeat("1", MaxNumberText+1), false},
		{"member twice", `{"a":1,"a":2}`, false},
		{"member twice, once escaped", `{"a":1,"\u0061":2}`, false},
		{"member twice, far down", `[{"x":{"a":1,"a":1}}]`, false},
		{"member twice among many", strings.TrimSuffix(wide(100), "}") + `,"k7":1}`, false},
		{"same key in siblings", `[{"a":1},{"a":1}]`, true},
		{"invalid UTF-8", "\"\xff\"", false},
		{"overlong UTF-8", "\"\xc0\xaf\"", false},
		{"lone high surrogate", `"\ud800"`, false},
		{"lone low surrogate", `"\udc00"`, false},
		{"surrogate pair", `"\ud83d\ude00"`, true},
		{"control character in a string", "\"a\nb\"", false},
		{"control character in the middle of a word", "\"aaaaaaa\x01aaaaaaaaaaaa\"", false},
		{"NUL", "\"a\x00\"", false},
		{"NUL escape", `"a\u0000"`, true},
		{"bad escape", `"\x41"`, false},
		{"unterminated string", `"abcdefghijkl`, false},
		{"unterminated escape", `"\`, false},
		{"nested to the limit", deep(MaxDepth), true},
		{"nested above the limit", deep(MaxDepth + 1), false},
		{"nested a million deep", strings.Repeat("[", 1_000_000), false},
		{"members to the limit", wide(MaxMembers), true},
		{"members above the limit", wide(MaxMembers + 1), false},
		{"members above the limit, in objects around each other", strings.TrimSuffix(wide(MaxMembers-1), "}") + `,"x":{"a":1,"b":2}}`, false},
		{"as many members in objects beside each other", "[" + wide(MaxMembers/2) + "," + wide(MaxMembers/2) + "," + wide(MaxMembers/2) + "]", true},
		{"member twice among very many", strings.TrimSuffix(wide(MaxMembers-1), "}") + `,"k\u0037":1}`, false},
		{"FID-8: 10,001 members", wide(10_001), true},
		{"FID-8: depth 70", deep(70), true},
		{"FID-8: a number of 100 digits", strings.Repeat("7", 100), true},
	} {
		if err := Check([]byte(tc.in)); (err == nil) != tc.ok {
			t.Errorf("%s: got %v, want ok=%v", tc.name, err, tc.ok)
		} else if err != nil && !errors.Is(err, ErrSyntax) {
			t.Errorf("%s: %v does not wrap ErrSyntax", tc.name, err)
		}
	}
}

func TestParseEnvelope(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     error
	}{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}`, nil},
		{"request with a string id", `{"jsonrpc":"2.0","id":"x","method":"m"}`, nil},
		{"notification", `{"jsonrpc":"2.0","method":"m"}`, nil},
		{"response", `{"jsonrpc":"2.0","id":1,"result":null}`, nil},
		{"error without id", `{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}`, nil},
		{"unknown member", `{"jsonrpc":"2.0","id":1,"method":"m","extra":true}`, nil},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"m"}]`, ErrBatch},
		{"scalar", `1`, ErrInvalid},
		{"wrong version", `{"jsonrpc":"1.0","id":1,"method":"m"}`, ErrInvalid},
		{"no version", `{"id":1,"method":"m"}`, ErrInvalid},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"m"}`, ErrInvalid},
		{"object id", `{"jsonrpc":"2.0","id":{},"method":"m"}`, ErrInvalid},
		{"method no string", `{"jsonrpc":"2.0","id":1,"method":1}`, ErrInvalid},
		{"array params", `{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}`, ErrInvalid},
		{"case variant of method", `{"jsonrpc":"2.0","id":1,"method":"m","Method":"n"}`, ErrInvalid},
		{"method twice", `{"jsonrpc":"2.0","id":1,"method":"m","method":"n"}`, ErrSyntax},
		{"result and error", `{"jsonrpc":"2.0","id":1,"result":1,"error":{}}`, ErrInvalid},
		{"call and result", `{"jsonrpc":"2.0","id":1,"method":"m","result":1}`, ErrInvalid},
		{"nothing", `{"jsonrpc":"2.0","id":1}`, ErrInvalid},
		{"no JSON", `{"jsonrpc":`, ErrSyntax},
	} {
		var m Message
		if err := m.Parse([]byte(tc.in)); !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, err, tc.want)
		}
	}
}

// HT-17: relayed content stays identical to the bit.
func TestEditsLeaveEverythingElseUntouched(t *testing.T) {
	raw := `{ "name" : "old" ,"big":123456789012345678901234567890,"f":1.10,"u":"\u00e9\/","_meta":{"progressToken":9007199254740993} }`
	o, err := ParseObject([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	got := string(o.Append(nil, Edit{"name", []byte(`"new"`)}, Edit{"_meta", nil}, Edit{"added", []byte(`[1]`)}))
	want := `{"name":"new","big":123456789012345678901234567890,"f":1.10,"u":"\u00e9\/","added":[1]}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if v := string(o.Get("big")); v != "123456789012345678901234567890" {
		t.Errorf("big: got %s", v)
	}
	if s, ok := o.String("u"); !ok || s != "é/" {
		t.Errorf("u: got %q, %v", s, ok)
	}
}

func TestParamsOfAMessageCanBeEdited(t *testing.T) {
	var m Message
	if err := m.Parse([]byte(` {"params":{"name":"a__b","arguments":{"x":1}},"id":7,"jsonrpc":"2.0","method":"tools/call"}`)); err != nil {
		t.Fatal(err)
	}
	if got := string(m.Params.Append(nil, Edit{"name", []byte(`"b"`)})); got != `{"name":"b","arguments":{"x":1}}` {
		t.Errorf(`got %s, want {"name":"b","arguments":{"x":1}}`, got)
	}
	if string(m.ID) != "7" || m.Method != "tools/call" || !m.IsRequest() {
		t.Errorf("got id %s method %s", m.ID, m.Method)
	}
}

func TestErrorObjectsSurvive(t *testing.T) {
	raw := []byte(`{"code":-32099,"message":"m","data":{"n":9007199254740993},"extra":1}`)
	e := ParseError(raw)
	if e.Code != -32099 || e.Message != "m" {
		t.Errorf(`got %+v, want code -32099 and the message "m"`, e)
	}
	if got := e.Append(nil); !bytes.Equal(got, raw) {
		t.Errorf("relayed %s, want %s", got, raw)
	}
	made := (&Error{Code: -1, Message: "a\"\n", Data: []byte(`1`)}).Append(nil)
	if string(made) != `{"code":-1,"message":"a\"\u000a","data":1}` {
		t.Errorf(`got %s, want {"code":-1,"message":"a\"\u000a","data":1}`, made)
	}
}

func FuzzEnvelope(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"b":[1,2.5e3,"\ud83d\ude00"]}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"x","error":{"code":-1,"message":"m"}}`))
	f.Add([]byte(`[{"a":"\u0061"}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		err := Check(data)
		if err == nil && !json.Valid(data) {
			t.Fatalf("accepted what encoding/json refuses: %q", data)
		}
		var m Message
		if m.Parse(data) != nil {
			return
		}
		if err != nil {
			t.Fatalf("parsed a message out of invalid JSON: %v", err)
		}
		var want struct {
			Method string
			ID     json.RawMessage
		}
		if json.Unmarshal(data, &want) != nil {
			return
		}
		if m.Method != want.Method {
			t.Fatalf("method %q, encoding/json says %q", m.Method, want.Method)
		}
		if m.Params.Len() > 0 {
			out := m.Params.Append(nil)
			if Check(out) != nil {
				t.Fatalf("rebuilt params are invalid: %s", out)
			}
		}
	})
}

func FuzzUnquote(f *testing.F) {
	f.Add([]byte(`"a\u00e9\ud83d\ude00\n\/"`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 || data[0] != '"' || Check(data) != nil {
			return
		}
		var want string
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		data = bytes.TrimSpace(data)
		if got, _ := AsString(data); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for _, size := range []int{64, 4 << 10, 256 << 10} {
		msg := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"text":"` + strings.Repeat("lorem ip", size/8) + `"}}}`)
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(msg)))
			var m Message
			for b.Loop() {
				if err := m.Parse(msg); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A copy of a message is independent of the memory that it was parsed into.
func TestCopyTo(t *testing.T) {
	for name, text := range map[string]string{
		"result":     `{"jsonrpc":"2.0","id":1,"result":{"a":1,"b":2}}`,
		"params":     `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"b":2}}`,
		"members":    `{"jsonrpc":"2.0","id":1,"result":{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10}}`,
		"no members": `{"jsonrpc":"2.0","id":1,"result":{}}`,
		"an error":   `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`,
		"no object":  `{"jsonrpc":"2.0","id":1,"result":[1]}`,
	} {
		var m, to, want Message
		if err := m.Parse([]byte(text)); err != nil {
			t.Fatal(err)
		}
		m.CopyTo(&to)
		if err := m.Parse([]byte(`{"jsonrpc":"2.0","id":22222,"result":{"xx":22222,"yy":33333}}`)); err != nil {
			t.Fatal(err)
		}
		if err := want.Parse([]byte(text)); err != nil {
			t.Fatal(err)
		}
		for _, o := range [][2]Object{{to.Params, want.Params}, {to.Result, want.Result}} {
			got, want := string(o[0].Append(nil)), string(o[1].Append(nil))
			if got != want {
				t.Errorf("%s: got %s, want %s", name, got, want)
			}
		}
		if string(to.ID) != "1" || string(to.Err) != string(want.Err) || to.Method != want.Method {
			t.Errorf("%s: got id %s, method %q, error %s; want those of %s", name, to.ID, to.Method, to.Err, text)
		}
	}
}
