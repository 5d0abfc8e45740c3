package remote

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/yaya-ai/yaya/kernel/tool"
)

var update = flag.Bool("update", false, "write docs/plugin-abi.schema.json again")

const schemaFile = "../../docs/plugin-abi.schema.json"

// messageSchemas returns the schema of every message as one document.
func messageSchemas(t *testing.T) []byte {
	t.Helper()
	raw := map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[json.RawMessage](): {}}
	defs := map[string]*jsonschema.Schema{}
	for _, name := range slices.Sorted(maps.Keys(Messages)) {
		s, err := jsonschema.ForType(reflect.TypeOf(Messages[name]), &jsonschema.ForOptions{TypeSchemas: raw})
		if err != nil {
			t.Fatalf("schema of %s: %v", name, err)
		}
		open(s)
		defs[name] = s
	}
	bound(defs)
	data, err := json.MarshalIndent(map[string]any{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"title":       "yaya plugin protocol",
		"description": "The params and results of docs/PLUGINS.md, by method.",
		"abi":         ABI,
		"$defs":       defs,
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(data, '\n')
}

// bound adds the limits that a schema can express to those of the types. Those of texts are in
// bytes, of which a character has one or more.
func bound(defs map[string]*jsonschema.Schema) {
	tools := defs["initialize.result"].Properties["tools"]
	tools.MaxItems = new(MaxTools)
	t := tools.Items.Properties
	t["name"].Pattern, t["name"].Not = tool.NamePattern().String(), &jsonschema.Schema{Pattern: servers}
	t["title"].MaxLength, t["description"].MaxLength = new(maxTitle), new(maxDescribed)
	t["timeout_ms"].Minimum, t["timeout_ms"].Maximum = new(0.0), new(float64(maxTimeout.Milliseconds()))
	defs["tool.call.result"].Properties["display"].MaxItems = new(maxBlocksTaken)
	defs["guard.result"].Properties["decision"].Enum = []any{"allow", "ask", "deny"}
	defs["tool.call.result"].Properties["display"].Items.Properties["kind"].Enum = []any{string(tool.BlockText), string(tool.BlockMarkdown), string(tool.BlockJSON)}
}

// open allows members that a schema does not name, as the protocol does, and lists that are
// left out instead of null.
func open(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil {
		s.AdditionalProperties = nil
	}
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for _, p := range s.Properties {
		open(p)
	}
	open(s.Items)
}

// The schemas that authors read are those of the types that yaya speaks with.
func TestSchemasAreGolden(t *testing.T) {
	got := messageSchemas(t)
	if *update {
		if err := os.WriteFile(schemaFile, got, 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(schemaFile)
	if err != nil || string(got) != string(want) {
		t.Errorf("%s is stale; run go test ./plugins/remote -run TestSchemas -update and review the change (err %v)", schemaFile, err)
	}
}
