// Package leaky is an MCP server for tests that leaks its secret in every possible way:
// in results and errors, in progress and log messages, whole and in pieces, in prompts
// and resources, on standard error and as it dies. It speaks 2025-06-18, a message a
// line.
package leaky

import (
	"bufio"
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
)

// Spellings returns the ways to write a value.
func Spellings(v string) []string {
	quote := func(s string) string {
		raw, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		return strings.Trim(string(raw), `"`)
	}
	runes := []rune(v)
	slices.Reverse(runes)
	var escapes, percent strings.Builder
	for i := range len(v) {
		fmt.Fprintf(&percent, "%%%02X", v[i])
	}
	for _, r := range v {
		fmt.Fprintf(&escapes, `\u%04x`, r)
	}
	out := []string{
		v, string(runes), quote(v), quote(quote(v)), escapes.String(), percent.String(), url.QueryEscape(v), url.PathEscape(v),
		fmt.Sprintf("%x", v), fmt.Sprintf("%X", v),
	}
	for shift := range 3 {
		b := append(bytes.Repeat([]byte("."), shift), v...)
		// The digits that do not depend on the surrounding bytes.
		from, to := (shift*8+5)/6, len(b)*8/6
		out = append(out, base64.StdEncoding.EncodeToString(b)[from:to], base64.URLEncoding.EncodeToString(b)[from:to])
	}
	var colons, spaces, array, slashed []string
	for i := range len(v) {
		colons, spaces = append(colons, fmt.Sprintf("%02x", v[i])), append(spaces, fmt.Sprintf("%02X", v[i]))
		array, slashed = append(array, fmt.Sprintf("0x%02x", v[i])), append(slashed, fmt.Sprintf(`\x%02x`, v[i]))
	}
	out = append(out, strings.Join(colons, ":"), strings.Join(spaces, " "), strings.Join(array, ", "), strings.Join(slashed, ""), html.EscapeString(v), strings.Join(strings.Split(v, ""), "\x00"))
	for shift := range 5 {
		b := append(bytes.Repeat([]byte("."), shift), v...)
		from, to := (shift*8+4)/5, len(b)*8/5
		out = append(out, base32.StdEncoding.EncodeToString(b)[from:to])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Block returns a value amidst other bytes in base64, in lines of 64 digits: the value extends
// over a line break.
func Block(v string) string {
	digits := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("z", 48-len(v)/2) + v + strings.Repeat("z", 40)))
	var b strings.Builder
	for len(digits) > 64 {
		b.WriteString(digits[:64] + "\n")
		digits = digits[64:]
	}
	return b.String() + digits
}

// Server is the server. Send sends a message; Stderr takes what it says beside that.
type Server struct {
	Secret string
	Send   func(msg any)
	Stderr io.Writer
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		URI       string          `json:"uri"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      struct {
			Token any `json:"progressToken"`
		} `json:"_meta"`
	} `json:"params"`
}

type object = map[string]any

// Handle answers a message.
func (s *Server) Handle(line []byte) {
	var m message
	if json.Unmarshal(line, &m) != nil || m.ID == nil {
		return
	}
	reply := func(result any) { s.Send(object{"jsonrpc": "2.0", "id": m.ID, "result": result}) }
	fail := func(text string) {
		s.Send(object{"jsonrpc": "2.0", "id": m.ID, "error": object{"code": -32000, "message": text, "data": object{"why": text}}})
	}
	text := func(t string) object { return object{"type": "text", "text": t} }
	all := strings.Join(Spellings(s.Secret), " | ") + "\n" + Block(s.Secret)
	switch m.Method {
	case "initialize":
		reply(object{"protocolVersion": "2025-06-18", "serverInfo": object{"name": "leaky " + s.Secret, "version": "1"}, "instructions": "the key is " + all,
			"capabilities": object{"tools": object{}, "prompts": object{}, "resources": object{}, "logging": object{}}})
	case "tools/list":
		var tools []object
		for _, name := range []string{"say", "fail", "refuse", "pieces", "log", "large", "crash"} {
			tools = append(tools, object{"name": name, "description": "tells " + s.Secret, "inputSchema": object{"type": "object"}})
		}
		reply(object{"tools": tools})
	case "prompts/list":
		reply(object{"prompts": []object{{"name": "p", "description": s.Secret}}})
	case "prompts/get":
		reply(object{"messages": []object{{"role": "user", "content": text(all)}}})
	case "resources/list":
		reply(object{"resources": []object{{"uri": "leaky://r", "name": "r", "description": s.Secret}}})
	case "resources/read":
		reply(object{"contents": []object{{"uri": m.Params.URI, "text": all}}})
	case "tools/call":
		switch m.Params.Name {
		case "say":
			blob := base64.StdEncoding.EncodeToString([]byte("PNG.." + s.Secret + "..IEND"))
			reply(object{"content": []object{
				text(all), {"type": "image", "mimeType": "image/png", "data": blob},
				{"type": "resource", "resource": object{"uri": "leaky://x", "text": all}}, {"type": "resource", "resource": object{"uri": "leaky://y", "blob": blob}},
			}, "structuredContent": object{"key": s.Secret, s.Secret: 1, "all": all}})
		case "fail":
			reply(object{"isError": true, "content": []object{text("cannot sign in with " + all)}})
		case "large":
			reply(object{"content": []object{text(strings.Repeat("x", 3<<20) + all + strings.Repeat("y", 3<<20))}})
		case "refuse":
			fail("401: the key " + all + " is not accepted")
		case "pieces":
			for _, how := range Spellings(s.Secret) {
				for i := 1; i < len(how); i += 7 {
					for n, piece := range []string{how[:i], how[i:]} {
						if m.Params.Meta.Token != nil {
							s.Send(object{"jsonrpc": "2.0", "method": "notifications/progress", "params": object{"progressToken": m.Params.Meta.Token, "progress": n, "message": piece}})
						}
						s.Send(object{"jsonrpc": "2.0", "method": "notifications/message", "params": object{"level": "error", "data": piece}})
					}
				}
			}
			reply(object{"content": []object{text("done")}})
		case "log":
			s.Send(object{"jsonrpc": "2.0", "method": "notifications/message", "params": object{"level": "error", "logger": s.Secret, "data": object{"text": all}}})
			s.Send("not JSON-RPC: " + all)
			fmt.Fprint(s.Stderr, "error: key ", s.Secret[:5])
			fmt.Fprintln(s.Stderr, s.Secret[5:], "and", all)
			reply(object{"content": []object{text("done")}})
		case "crash":
			fmt.Fprint(s.Stderr, "fatal: bad key ", s.Secret[:9])
			fmt.Fprintln(s.Stderr, s.Secret[9:])
			os.Exit(3)
		}
	default:
		reply(object{})
	}
}

// Stdio serves on standard input and output.
func (s *Server) Stdio(in io.Reader, out io.Writer) error {
	enc := json.NewEncoder(out)
	s.Send = func(msg any) {
		if text, ok := msg.(string); ok {
			_, _ = fmt.Fprintln(out, text)
			return
		}
		_ = enc.Encode(msg)
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		s.Handle(lines.Bytes())
	}
	return lines.Err()
}

// HTTP serves over HTTP: each answer is a stream of events. The secret is what the
// header X-Api-Key of a request says.
func HTTP() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("X-Api-Key")
		if r.Method != http.MethodPost {
			http.Error(w, "no streams for "+key, http.StatusMethodNotAllowed)
			return
		}
		var body json.RawMessage
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if bytes.Contains(body, []byte(`"crash"`)) {
			http.Error(w, "the key "+key+" is bad", http.StatusInternalServerError)
			return
		}
		if !bytes.Contains(body, []byte(`"id"`)) {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		s := &Server{Secret: key, Stderr: io.Discard, Send: func(msg any) {
			raw, err := json.Marshal(msg)
			if err == nil {
				_, _ = fmt.Fprintf(w, "data: %s\n\n", raw)
			}
		}}
		s.Handle(body)
	})
}
