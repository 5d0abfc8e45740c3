package sessions_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// document is what the fuzzing needs of the OpenAPI document.
type document struct {
	OpenAPI string                          `json:"openapi"`
	Paths   map[string]map[string]operation `json:"paths"`
}

type operation struct {
	ID         string `json:"operationId"`
	Parameters []struct {
		Name     string         `json:"name"`
		In       string         `json:"in"`
		Required bool           `json:"required"`
		Schema   map[string]any `json:"schema"`
	} `json:"parameters"`
	RequestBody *struct {
		Content map[string]media `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Content map[string]media `json:"content"`
	} `json:"responses"`
}

type media struct {
	Schema json.RawMessage `json:"schema"`
}

// generator makes values, some of them good and some of them not.
type generator struct {
	r       *rand.Rand
	schemas map[string]any
	ids     []string
	depth   int
}

var nasty = []string{"", " ", "x", "../../etc/passwd", "a\x00b", "\u202e", "💩", "' OR 1=1 --", "{{7*7}}", "%00", "-1", "1e400", "null", "true", strings.Repeat("A", 5000), "sess_", "\r\nX: y"}

func (g *generator) value(schema map[string]any) any {
	g.depth++
	defer func() { g.depth-- }()
	if g.r.IntN(12) == 0 || g.depth > 8 { // of any type
		return []any{nil, true, -1, 1e300, "x", []any{}, map[string]any{}, nasty[g.r.IntN(len(nasty))]}[g.r.IntN(8)]
	}
	if ref, ok := schema["$ref"].(string); ok {
		s, _ := g.schemas[ref[strings.LastIndex(ref, "/")+1:]].(map[string]any)
		return g.value(s)
	}
	if enum, ok := schema["enum"].([]any); ok && g.r.IntN(6) > 0 {
		return enum[g.r.IntN(len(enum))]
	}
	typ, _ := schema["type"].(string)
	if types, ok := schema["type"].([]any); ok {
		typ, _ = types[g.r.IntN(len(types))].(string)
	}
	switch typ {
	case "boolean":
		return g.r.IntN(2) == 0
	case "integer", "number":
		return []any{0, 1, 2, 50, -1, 1 << 53, -7.5, 1e18}[g.r.IntN(8)]
	case "array":
		items, _ := schema["items"].(map[string]any)
		out := []any{}
		for range g.r.IntN(4) {
			out = append(out, g.value(items))
		}
		return out
	case "object":
		return g.object(schema)
	case "null":
		return nil
	}
	return g.text()
}

func (g *generator) object(schema map[string]any) any {
	props, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	out := map[string]any{}
	names := make([]string, 0, len(props))
	for name := range props {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		p, _ := props[name].(map[string]any)
		if (slices.Contains(required, any(name)) && g.r.IntN(15) > 0) || g.r.IntN(3) == 0 {
			out[name] = g.value(p)
		}
	}
	if g.r.IntN(20) == 0 {
		out["unknown"] = 1
	}
	return out
}

func (g *generator) text() string {
	switch g.r.IntN(4) {
	case 0:
		return nasty[g.r.IntN(len(nasty))]
	case 1:
		return g.ids[g.r.IntN(len(g.ids))]
	}
	return fmt.Sprint("text ", g.r.IntN(100))
}

// Requests made from the OpenAPI document, good ones and bad ones, are answered as it
// says: never with an error of the server's, never with a status or a body that it
// does not have.
func TestOpenAPIFuzz(t *testing.T) {
	w := newWorld(t, "")
	_, raw, h := w.raw("GET", "/v1/openapi.json", "")
	var doc document
	var whole map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil || json.Unmarshal(raw, &whole) != nil || h.Get("Content-Type") != "application/json" || !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Fatal(err, h, doc.OpenAPI)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("doc.json", whole); err != nil {
		t.Fatal(err)
	}
	compiled := map[string]*jsonschema.Schema{}
	check := func(pointer string, body []byte) error {
		s := compiled[pointer]
		if s == nil {
			var err error
			if s, err = compiler.Compile("doc.json#" + pointer); err != nil {
				return fmt.Errorf("the schema at %s: %w", pointer, err)
			}
			compiled[pointer] = s
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(body)))
		if err != nil {
			return err
		}
		return s.Validate(v)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	components, _ := whole["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	g := &generator{r: rand.New(rand.NewPCG(seed, 1)), schemas: schemas}
	rounds := 150
	if testing.Short() {
		rounds = 10
	}
	statuses := map[string]map[int]int{}
	for range rounds {
		if len(g.ids) < 3 || g.r.IntN(10) == 0 {
			g.ids = append(g.ids, w.create())
		}
		for path, item := range doc.Paths {
			for method, op := range item {
				if op.ID == "streamEvents" || (op.ID == "archiveSession" && g.r.IntN(5) > 0) {
					continue
				}
				method = strings.ToUpper(method)
				target, header := g.target(path, op)
				body, kind := g.body(op)
				if kind != "" {
					header = append(header, "Content-Type", kind)
				}
				status, answer, got := w.raw(method, target, body, header...)
				if statuses[op.ID] == nil {
					statuses[op.ID] = map[int]int{}
				}
				statuses[op.ID][status]++
				if status >= 500 {
					t.Fatalf("%s %s %.300s: %d %s", method, target, body, status, answer)
				}
				if err := documented(op, path, method, status, answer, got, check); err != nil {
					t.Fatalf("%s %s %.300s: %d %.500s: %v", method, target, body, status, answer, err)
				}
			}
		}
		for _, id := range g.ids { // what runs has to end some time
			_, _, _ = w.raw("POST", "/v1/sessions/"+id+"/cancel", "")
		}
	}
	for id, by := range statuses {
		good := 0
		for status, n := range by {
			if status < 300 {
				good += n
			}
		}
		if good == 0 && rounds > 10 && !slices.Contains([]string{"decide", "getAttachment", "getArtifact", "retryTurn", "attach", "cancelTurn"}, id) {
			t.Errorf("%s has never succeeded: %v", id, by)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(w.dir)); err != nil || len(entries) > 3 {
		t.Errorf("something lies where it should not: %v %v", entries, err)
	}
}

// target fills in a path's parameters, and adds some of the others.
func (g *generator) target(path string, op operation) (string, []string) {
	q := url.Values{}
	var header []string
	for _, p := range op.Parameters {
		switch {
		case p.In == "path" && p.Name == "session_id" && g.r.IntN(8) > 0:
			path = strings.Replace(path, "{session_id}", g.ids[g.r.IntN(len(g.ids))], 1)
		case p.In == "path":
			v := g.text()
			if v == "" || v == " " {
				v = "x"
			}
			path = strings.Replace(path, "{"+p.Name+"}", url.PathEscape(v), 1)
		case p.In == "query" && g.r.IntN(3) == 0:
			q.Set(p.Name, fmt.Sprint(g.value(p.Schema)))
		case p.In == "header" && g.r.IntN(3) == 0:
			if v := g.text(); !strings.ContainsAny(v, "\r\n\x00") {
				header = append(header, p.Name, v)
			}
		}
	}
	if g.r.IntN(30) == 0 {
		q.Set("unknown", "1")
	}
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return path, header
}

func (g *generator) body(op operation) (body, kind string) {
	if op.RequestBody == nil {
		return "", ""
	}
	if g.r.IntN(25) == 0 {
		return []string{"{", "[]", "null", "\xff", `{"a":1,"a":2}`, strings.Repeat("[", 500)}[g.r.IntN(6)], "application/json"
	}
	if g.r.IntN(40) == 0 {
		return "x", "text/plain"
	}
	m, ok := op.RequestBody.Content["application/json"]
	if !ok {
		return "", ""
	}
	if op.ID == "postMessage" && g.r.IntN(3) == 0 {
		return `{"role":"user","parts":[{"type":"text","text":"hello"}],"on_busy":"interrupt"}`, "application/json"
	}
	var schema map[string]any
	if json.Unmarshal(m.Schema, &schema) != nil {
		return "", ""
	}
	v := g.value(schema)
	if o, isObject := v.(map[string]any); isObject {
		if _, has := o["workspace_path"]; has && g.r.IntN(3) > 0 {
			o["workspace_path"] = os.TempDir()
		}
		if _, has := o["parts"]; has && g.r.IntN(2) == 0 {
			o["parts"], o["role"] = []any{map[string]any{"type": "text", "text": "hello"}}, "user"
		}
		if _, has := o["message_ids"]; has && g.r.IntN(2) == 0 {
			o["message_ids"] = []any{}
		}
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return "", ""
	}
	return string(raw), "application/json"
}

// documented checks an answer against what the document says of it.
func documented(op operation, path, method string, status int, body []byte, h http.Header, check func(string, []byte) error) error {
	key := fmt.Sprint(status)
	r, ok := op.Responses[key]
	if !ok {
		key = "default"
		if r, ok = op.Responses[key]; !ok || status < 400 {
			return fmt.Errorf("the status is not in the document")
		}
	}
	if len(r.Content) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("there is a body, and the document has none")
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return err
	}
	if _, ok := r.Content[kind]; !ok {
		if _, any := r.Content["application/octet-stream"]; any {
			return nil
		}
		return fmt.Errorf("%s is not in the document", kind)
	}
	if kind != "application/json" {
		return nil
	}
	esc := strings.NewReplacer("~", "~0", "/", "~1")
	return check("/paths/"+esc.Replace(path)+"/"+strings.ToLower(method)+"/responses/"+key+"/content/application~1json/schema", body)
}
