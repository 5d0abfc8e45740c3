package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// Limits of a tool's schema.
const (
	MaxSchemaBytes      = 64 << 10
	MaxSchemaDepth      = 32
	MaxSubschemas       = 1000
	maxSchemaExpansions = 100_000 // nodes visited when every local $ref is followed
)

var errSchema = errors.New("unacceptable schema")

// CheckSchema returns an error if a schema is not a JSON object, is too large or
// too deep, refers outside itself, or grows too much when its references are
// followed. It does no I/O and takes bounded time.
func CheckSchema(raw json.RawMessage) error {
	if len(raw) > MaxSchemaBytes {
		return fmt.Errorf("%w: %d bytes, the limit is %d", errSchema, len(raw), MaxSchemaBytes)
	}
	if err := jsonrpc.Check(raw); err != nil {
		return fmt.Errorf("%w: %w", errSchema, err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var doc any
	if err := dec.Decode(&doc); err != nil {
		return fmt.Errorf("%w: %w", errSchema, err)
	}
	root, ok := doc.(map[string]any)
	if !ok {
		return fmt.Errorf("%w: it is not an object", errSchema)
	}
	m := measurer{root: root, cost: map[string]int{}}
	if err := m.walk(root, 0); err != nil {
		return err
	}
	if m.refs > 0 && m.expand(root, nil) > maxSchemaExpansions {
		return fmt.Errorf("%w: its references expand to more than %d parts", errSchema, maxSchemaExpansions)
	}
	return nil
}

type measurer struct {
	root  map[string]any
	nodes int
	refs  int
	cost  map[string]int // expansion cost by $ref; -1 while it is being computed
}

func (m *measurer) walk(v any, depth int) error {
	if depth > MaxSchemaDepth {
		return fmt.Errorf("%w: nested deeper than %d", errSchema, MaxSchemaDepth)
	}
	switch v := v.(type) {
	case map[string]any:
		if m.nodes++; m.nodes > MaxSubschemas {
			return fmt.Errorf("%w: more than %d parts", errSchema, MaxSubschemas)
		}
		for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
			ref, ok := v[key].(string)
			if !ok {
				continue
			}
			if !strings.HasPrefix(ref, "#") {
				return fmt.Errorf("%w: %s %.100q points outside the schema", errSchema, key, ref)
			}
			m.refs++
		}
		for _, child := range v {
			if err := m.walk(child, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, child := range v {
			if err := m.walk(child, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// expand counts the parts of v with local references followed; a recursive
// reference counts once, because validation consumes the instance on the way.
func (m *measurer) expand(v any, path []string) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok && !slices.Contains(path, ref) {
			cost, known := m.cost[ref]
			if !known {
				if target := m.resolve(ref); target != nil {
					cost = m.expand(target, append(path, ref))
				}
				m.cost[ref] = cost
			}
			n += cost
		}
		for _, child := range v {
			n += m.expand(child, path)
		}
	case []any:
		for _, child := range v {
			n += m.expand(child, path)
		}
	}
	return min(n, maxSchemaExpansions+1)
}

// resolve finds the target of a local reference; nil if there is none, or if it is
// the root, whose parts are already being counted.
func (m *measurer) resolve(ref string) any {
	if strings.Trim(ref, "#/") == "" {
		return nil
	}
	var v any = m.root
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#"), "/") {
		if part == "" {
			continue
		}
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		obj, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = obj[part]
	}
	return v
}

// noLoader refuses every reference that leaves the schema; nothing is fetched.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%w: reference to %.100q", errSchema, url)
}

// compiled returns what compiles a schema when it is first needed.
func compiled(raw json.RawMessage) func() (*jsonschema.Schema, error) {
	return sync.OnceValues(func() (*jsonschema.Schema, error) { return compileSchema(raw) })
}

func compileSchema(raw json.RawMessage) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	if err := c.AddResource("tool.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("tool.json")
}

// Violation is one violation of the schema by the arguments.
type Violation struct {
	Path    string `json:"path"` // JSON Pointer into the arguments
	Message string `json:"message"`
}

// String is the message, behind the path if it is about a part of the arguments.
func (v Violation) String() string { return strings.TrimPrefix(v.Path+": "+v.Message, ": ") }

// Violates returns why a value does not fit a schema, "" if it does. The error is about the schema.
func Violates(schema, value json.RawMessage) (why string, err error) {
	s, err := compileSchema(schema)
	if err != nil {
		return "", err
	}
	var all []string
	for _, v := range validate(s, value) {
		all = append(all, v.String())
	}
	return strings.Join(all, "; "), nil
}

const maxViolations = 20

// violated says in a sentence what does not fit.
func violated(what jsonschema.ErrorKind, printer *message.Printer) string {
	switch what := what.(type) {
	case *kind.Required:
		return strings.Join(what.Missing, ", ") + map[bool]string{true: " is missing", false: " are missing"}[len(what.Missing) == 1]
	case *kind.AdditionalProperties:
		return "unknown member " + quotedList(what.Properties)
	}
	return what.LocalizedString(printer)
}

func quotedList(all []string) string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = strconv.Quote(s)
	}
	return strings.Join(out, ", ")
}

func validate(schema *jsonschema.Schema, args json.RawMessage) []Violation {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return []Violation{{Message: err.Error()}}
	}
	err = schema.Validate(v)
	if err == nil {
		return nil
	}
	ve, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return []Violation{{Message: err.Error()}}
	}
	var out []Violation
	printer := message.NewPrinter(language.English)
	var collect func(e *jsonschema.ValidationError)
	collect = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 && len(out) < maxViolations {
			path := ""
			for _, p := range e.InstanceLocation {
				path += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(p)
			}
			out = append(out, Violation{Path: path, Message: violated(e.ErrorKind, printer)})
		}
		for _, c := range e.Causes {
			collect(c)
		}
	}
	collect(ve)
	return out
}
