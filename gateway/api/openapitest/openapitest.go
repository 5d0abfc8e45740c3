// Package openapitest makes requests from an OpenAPI document, good ones and bad
// ones, and checks that they are answered as it says.
package openapitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// API is the API under test.
type API struct {
	// Document is the path of the OpenAPI document.
	Document string
	// Do sends a request; header are names and values in turn.
	Do func(method, target, body string, header ...string) (status int, answer []byte, got http.Header)
	// ID makes a new resource and returns its id, for the path parameters that Named
	// names. IDs are drawn for texts, too.
	ID    func() string
	Named []string
	// Skip leaves an operation out this time.
	Skip func(r *rand.Rand, operation string) bool
	// Body may put better values into a body than a generator would.
	Body func(r *rand.Rand, operation string, body map[string]any)
	// Whole may replace a body; "" leaves it.
	Whole func(r *rand.Rand, operation string) string
	// After is called after every round with the ids.
	After func(ids []string)
	// Rare are operations that need not succeed once.
	Rare []string
}

// document holds the parts of the OpenAPI document that the fuzzing needs.
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
	api     API
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

// Fuzz sends what rounds over all operations make of the document: no answer is an
// error of the server's, and none has a status or a body that the document does not
// have.
func Fuzz(t *testing.T, api API, rounds int) {
	t.Helper()
	_, raw, h := api.Do("GET", api.Document, "")
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
	seed := rand.Uint64() //nolint:gosec // chance, no secret
	t.Logf("seed %d", seed)
	components, _ := whole["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	g := &generator{r: rand.New(rand.NewPCG(seed, 1)), schemas: schemas, api: api} //nolint:gosec // chance, no secret
	statuses := map[string]map[int]int{}
	for range rounds {
		if len(g.ids) < 3 || g.r.IntN(5) == 0 {
			g.ids = append(g.ids, api.ID())
		}
		for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
			for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
				op := doc.Paths[path][method]
				if api.Skip != nil && api.Skip(g.r, op.ID) {
					continue
				}
				method = strings.ToUpper(method)
				target, header := g.target(path, op)
				body, kind := g.body(op)
				if kind != "" {
					header = append(header, "Content-Type", kind)
				}
				status, answer, got := api.Do(method, target, body, header...)
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
		if api.After != nil {
			api.After(g.ids)
		}
	}
	for id, by := range statuses {
		good := 0
		for status, n := range by {
			if status < 300 {
				good += n
			}
		}
		if good == 0 && rounds > 10 && !slices.Contains(api.Rare, id) {
			t.Errorf("%s has never succeeded: %v", id, by)
		}
	}
}

// target fills in a path's parameters, and adds some of the others.
func (g *generator) target(path string, op operation) (string, []string) {
	q := url.Values{}
	var header []string
	for _, p := range op.Parameters {
		switch {
		case p.In == "path" && slices.Contains(g.api.Named, p.Name) && g.r.IntN(8) > 0:
			id := g.ids[len(g.ids)-1] // of the others many are gone
			if g.r.IntN(2) == 0 {
				id = g.ids[g.r.IntN(len(g.ids))]
			}
			path = strings.Replace(path, "{"+p.Name+"}", url.PathEscape(id), 1)
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
	if g.api.Whole != nil {
		if body := g.api.Whole(g.r, op.ID); body != "" {
			return body, "application/json"
		}
	}
	var schema map[string]any
	if json.Unmarshal(m.Schema, &schema) != nil {
		return "", ""
	}
	v := g.value(schema)
	if o, isObject := v.(map[string]any); isObject && g.api.Body != nil {
		g.api.Body(g.r, op.ID, o)
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
