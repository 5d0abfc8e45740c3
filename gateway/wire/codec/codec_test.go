package codec

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/tinylib/msgp/msgp"
	"pgregory.net/rapid"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// W-2, HT-17, R13: JSON and MessagePack convert into each other without loss, to the last bit of
// an integer.
func TestCodecRoundTrip(t *testing.T) {
	for _, in := range []string{
		`null`, `true`, `false`, `0`, `-1`, `127`, `128`, `-32`, `-33`, `65535`, `4294967296`, `9007199254740993`, `-9223372036854775808`, `18446744073709551615`,
		`1.5`, `-0.25`, `0.1`, `123456.789`, `""`, `"a"`, `"\"\\/\b\f\n\r\t"`, `"\u00e4\ud83d\ude00"`, `"` + strings.Repeat("x", 70_000) + `"`,
		`[]`, `{}`, `[1,[2,[3]]]`, `{"b":1,"a":{"c":[]}}`, "[" + strings.Repeat("1,", 15) + "1]", "[" + strings.Repeat("1,", 70_000) + "1]",
	} {
		packed := appendMsgpack(nil, []byte(in))
		out, err := fromMsgpack(packed)
		if err != nil {
			t.Errorf("fromMsgpack of %.60s = %v, want no error", in, err)
			continue
		}
		var a, b any
		da, db := json.NewDecoder(strings.NewReader(in)), json.NewDecoder(bytes.NewReader(out))
		da.UseNumber()
		db.UseNumber()
		if da.Decode(&a) != nil || db.Decode(&b) != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%.60s became %.60s", in, out)
		}
		if rest, err := msgp.Skip(packed); err != nil || len(rest) != 0 { // the library reads it, too
			t.Errorf("%.60s: msgp: %v, %d left", in, err, len(rest))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		v := value(t, 4)
		in, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out, err := fromMsgpack(appendMsgpack(nil, in))
		if err != nil {
			t.Fatalf("fromMsgpack of %s = %v, want no error", in, err)
		}
		var back any
		if err := json.Unmarshal(out, &back); err != nil {
			t.Fatal(err)
		}
		var want any
		if err := json.Unmarshal(in, &want); err != nil || !reflect.DeepEqual(want, back) {
			t.Fatalf("%s became %s", in, out)
		}
	})
}

func value(t *rapid.T, depth int) any {
	kinds := 6
	if depth > 0 {
		kinds = 8
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.Int64().Draw(t, "int")
	case 3:
		return rapid.Uint64().Draw(t, "uint")
	case 4:
		return rapid.Float64().Draw(t, "float")
	case 5:
		return rapid.String().Draw(t, "string")
	case 6:
		n := rapid.IntRange(0, 20).Draw(t, "n")
		out := make([]any, n)
		for i := range out {
			out[i] = value(t, depth-1)
		}
		return out
	default:
		out := map[string]any{}
		for range rapid.IntRange(0, 20).Draw(t, "n") {
			out[rapid.String().Draw(t, "key")] = value(t, depth-1)
		}
		return out
	}
}

// Limits, one below, at and above (C.2).
func TestCodecLimits(t *testing.T) {
	for depth, good := range map[int]bool{63: true, 64: true, 65: false} {
		data := append(bytes.Repeat([]byte{0x91}, depth), 0xc0)
		if _, err := fromMsgpack(data); (err == nil) != good {
			t.Errorf("depth %d: %v", depth, err)
		}
	}
	for members, good := range map[int]bool{9_999: true, 10_000: true, 10_001: false} {
		data := msgp.AppendMapHeader(nil, uint32(members))
		for i := range members {
			data = msgp.AppendInt(msgp.AppendString(data, string(rune('a'+i%26))+strings.Repeat("x", i/26)), 1)
		}
		if _, err := fromMsgpack(data); (err == nil) != good {
			t.Errorf("%d members: %v", members, err)
		}
	}
	// bin is base64, as JSON has no bytes.
	if out, err := fromMsgpack([]byte("\xc4\x03abc")); err != nil || string(out) != `"YWJj"` {
		t.Errorf("got %s, %v, want out %q", out, err, `"YWJj"`)
	}
	// Elements that a header only declares cost nothing.
	bomb := []byte("\xdd\xff\xff\xff\xff")
	if n := testing.AllocsPerRun(100, func() { _, _ = fromMsgpack(bomb) }); n > 8 {
		t.Errorf("%v allocations", n)
	}
}

// A frame of ours is what gorilla reads.
func TestFrames(t *testing.T) {
	for _, n := range []int{0, 1, 125, 126, 127, 65535, 65536, 1 << 20} {
		b := NewFrame(websocket.BinaryMessage, make([]byte, n))
		header := 2
		if n > 125 {
			header = 4
		}
		if n > 65535 {
			header = 10
		}
		if len(b) != n+header || b[0] != 0x82 {
			t.Errorf("%d bytes: %d in the frame, %x", n, len(b), b[:min(12, len(b))])
		}
	}
	if f := CloseFrame(4408, strings.Repeat("x", 124)); len(f) != 4 {
		t.Errorf("a long reason: %x", f)
	}
}

// WS-16: every input is refused, or becomes JSON with one meaning.
func FuzzDecodeFrame(f *testing.F) {
	for _, seed := range []string{"\x95\xa11\xa11\xa7phoenix\xa9heartbeat\x80", "\x81\xa1a\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", "\xdd\xff\xff\xff\xff", "\xc4\x03abc", `["1","1","phoenix","heartbeat",{}]`, `{"topic":"a","event":"b"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, fm := range []Format{{false, false}, {false, true}, {true, false}, {true, true}} {
			raw, err := fm.ToJSON(data)
			if err != nil {
				continue
			}
			if err := jsonrpc.Check(raw); err != nil {
				t.Fatalf("%x became %s: %v", data, raw, err)
			}
			m, err := fm.Parse(raw)
			if err != nil {
				continue
			}
			back, err := fm.Parse(fm.Body(m))
			if err != nil || back.Topic != m.Topic || back.Event != m.Event || string(back.Payload) != string(m.Payload) {
				t.Fatalf("%s is not read again: %v", fm.Body(m), err)
			}
			if len(fm.Frame(m)) == 0 {
				t.Fatal("no frame")
			}
		}
	})
}
