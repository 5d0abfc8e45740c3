package event_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/yaya-ai/yaya/kernel/event"
)

var update = flag.Bool("update", false, "rewrite the generated schemas in docs/events")

const docs = "../../docs"

// contract is the closed list with every payload's required and optional
// members, from the protocol (Y-21…Y-60) and its amendment. It is written by
// hand on purpose: the catalogue must match it, not produce it.
var contract = map[string]string{
	"user.message.received":        "text attachments?",                                                                                       // Y-21
	"user.interrupt":               "",                                                                                                        // Y-22
	"assistant.message.delta":      "content",                                                                                                 // Y-23
	"assistant.message.done":       "content tool_calls",                                                                                      // Y-24
	"llm.call.request":             "provider model messages tools? params",                                                                   // Y-25
	"llm.call.delta":               "content? reasoning? tool_call_partial? request_id?",                                                      // Y-26
	"llm.call.response":            "text? tool_calls? usage reasoning? stop_reason? model? cost_usd? request_id?",                            // Y-27
	"llm.call.error":               "error kind? status_code? retry_after_s? overflow? context_window? request_id?",                           // Y-28
	"llm.call.retry":               "attempt wait_s error kind? status_code? request_id?",                                                     // amendment
	"llm.call.fallback":            "failed next error kind? status_code?",                                                                    // amendment
	"tool.call.request":            "id name args schema_version? request_id?",                                                                // Y-30
	"tool.call.start":              "id name args",                                                                                            // Y-31
	"tool.call.result":             "id ok value? error? envelope? request_id?",                                                               // Y-32
	"tool.error":                   "id kind brief detail? request_id?",                                                                       // Y-33
	"approval.request":             "id tool_name params brief",                                                                               // Y-34
	"approval.response":            "id response feedback?",                                                                                   // Y-35
	"approval.cancelled":           "id reason",                                                                                               // Y-36
	"memory.query":                 "query k folder?",                                                                                         // Y-38
	"memory.write":                 "entry",                                                                                                   // Y-39
	"memory.result":                "hits request_id?",                                                                                        // Y-40
	"strategy.decide.request":      "state",                                                                                                   // Y-41
	"strategy.decide.response":     "next provider? model? system? tools? query? k? params? remember? folder? tool_calls? notes? request_id?", // Y-42
	"plugin.loaded":                "name version category",                                                                                   // Y-43
	"plugin.reloaded":              "name version",                                                                                            // Y-43
	"plugin.removed":               "name",                                                                                                    // Y-43
	"plugin.error":                 "name error",                                                                                              // Y-43
	"kernel.ready":                 "version",                                                                                                 // Y-45
	"kernel.shutdown":              "reason",                                                                                                  // Y-45
	"kernel.error":                 "source message detail?",                                                                                  // Y-45
	"session.started":              "session_id tape_name workspace",                                                                          // Y-46
	"session.handoff":              "session_id name state",                                                                                   // Y-47
	"session.reset":                "session_id archive_path",                                                                                 // Y-48
	"session.archived":             "session_id archive_path",                                                                                 // Y-49
	"session.deleted":              "session_id",                                                                                              // OP-14
	"session.forked":               "parent_id child_id",                                                                                      // Y-50
	"session.compaction.started":   "target_session_id tokens_before",                                                                         // Y-51
	"session.compaction.completed": "target_session_id tokens_before tokens_after how?",                                                       // Y-52
	"session.compaction.failed":    "target_session_id error",                                                                                 // Y-53
	"config.updated":               "key prefix_match_hint",                                                                                   // Y-54
	"session.context.attached":     "session_id connection_id adapter_id",                                                                     // Y-56
	"session.context.detached":     "session_id connection_id reason",                                                                         // Y-57
	"session.context.evicted":      "session_id reason",                                                                                       // Y-58
	"session.replay.entry":         "session_id entry_id kind payload",                                                                        // Y-59
	"session.replay.done":          "session_id connection_id replayed",                                                                       // Y-60
	"turn.started":                 "turn_id model? tool_generation",                                                                          // amendment
	"turn.completed":               "turn_id usage steps cost_usd? stop_reason?",                                                              // amendment
	"turn.failed":                  "turn_id error kind",                                                                                      // amendment
	"turn.cancelled":               "turn_id reason",                                                                                          // amendment
	"turn.note":                    "name text",                                                                                               // amendment
	"turn.notice":                  "text",                                                                                                    // amendment
	"tool.progress":                "id progress total? message?",                                                                             // amendment
	"verify.started":               "turn_id command",                                                                                         // amendment
	"verify.completed":             "turn_id command exit_code? output_ref?",                                                                  // amendment
}

// members lists the JSON members of a payload type, "?" after optional ones.
func members(t reflect.Type) []string {
	var out []string
	for f := range t.Fields() {
		tag := f.Tag.Get("json")
		if f.Anonymous {
			out = append(out, members(f.Type)...)
			continue
		}
		if tag == "-" {
			continue
		}
		name, opts, _ := strings.Cut(tag, ",")
		if strings.Contains(opts, "omitempty") {
			name += "?"
		}
		out = append(out, name)
	}
	return out
}

// Y-21…Y-61: the catalogue is exactly the contract, name by name and member by
// member.
func TestCatalogueMatchesTheContract(t *testing.T) {
	seen := map[string]bool{}
	for k := range event.Public() {
		seen[k.Name] = true
		want, ok := contract[k.Name]
		if !ok {
			t.Errorf("%s is in the catalogue, but not in the contract", k.Name)
			continue
		}
		got, wanted := members(k.Payload()), strings.Fields(want)
		slices.Sort(got)
		slices.Sort(wanted)
		if !slices.Equal(got, wanted) {
			t.Errorf("%s: members %v, contract %v", k.Name, got, wanted)
		}
	}
	for name := range contract {
		if !seen[name] {
			t.Errorf("%s is in the contract, but not in the catalogue", name)
		}
	}
}

// Y-61, Y-62: documentation and catalogue change together.
func TestProtocolDocumentListsTheCatalogue(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(docs, "PROTOCOL.md")) //nolint:forbidigo // test reads the docs
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `([a-z._]+)` \\| ([^|]*) \\| `([^`]*)` \\|")
	listed := map[string]bool{}
	_, table, _ := strings.Cut(string(text), "\n## The catalogue\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, m := range row.FindAllStringSubmatch(table, -1) {
		listed[m[1]] = true
		k, ok := event.Lookup(m[1])
		if !ok {
			t.Errorf("docs/PROTOCOL.md lists %s, which is not in the catalogue", m[1])
			continue
		}
		if k.Flow != strings.TrimSpace(m[2]) {
			t.Errorf("%s: the document says %q, the catalogue %q", m[1], strings.TrimSpace(m[2]), k.Flow)
		}
		if want := strings.Join(members(k.Payload()), " "); m[3] != want && m[3] != "{}" {
			t.Errorf("%s: the document lists members %q, the catalogue %q", m[1], m[3], want)
		}
	}
	for k := range event.Public() {
		if !listed[k.Name] {
			t.Errorf("docs/PROTOCOL.md does not list %s:\n| `%s` | %s | `%s` |", k.Name, k.Name, k.Flow, strings.Join(members(k.Payload()), " "))
		}
	}
	if !strings.Contains(string(text), "protocol "+event.ProtocolVersion) { // Y-2
		t.Errorf("docs/PROTOCOL.md does not name protocol %s", event.ProtocolVersion)
	}
}

// Y-61: the generated schemas are the committed ones, and they accept what the
// types write.
func TestSchemasAreGolden(t *testing.T) {
	dir := filepath.Join(docs, "events")
	var want []string
	for k := range event.Public() {
		got, err := k.Schema()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, '\n')
		path := filepath.Join(dir, k.Name+".json")
		want = append(want, path)
		if *update {
			if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:forbidigo,gosec // documentation
				t.Fatal(err)
			}
			if err := os.WriteFile(path, got, 0o644); err != nil { //nolint:forbidigo,gosec // documentation
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(path) //nolint:forbidigo // test reads the docs
		if err != nil || !bytes.Equal(have, got) {
			t.Errorf("%s is stale; run go test ./kernel/event -update and review the change (err %v)", path, err)
		}
		c := jsonschema.NewCompiler()
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(got))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource("s.json", doc); err != nil {
			t.Fatal(err)
		}
		schema, err := c.Compile("s.json")
		if err != nil {
			t.Fatalf("%s: Compile = %v, want a valid schema", k.Name, err)
		}
		if err := schema.Validate(map[string]any{"unexpected": true}); err == nil && strings.Contains(strings.ReplaceAll(contract[k.Name]+" ", "? ", ""), " ") && !allOptional(contract[k.Name]) {
			t.Errorf("%s: the schema accepts a payload without its members", k.Name)
		}
	}
	have, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("docs/events holds %d files, want %d", len(have), len(want))
	}
}

func allOptional(members string) bool {
	for m := range strings.FieldsSeq(members) {
		if !strings.HasSuffix(m, "?") {
			return false
		}
	}
	return true
}

// Y-28, Y-33, Y-35, Y-42: the closed value sets are in the schemas.
func TestSchemasCloseTheirEnums(t *testing.T) {
	for kind, values := range map[string][]string{
		"llm.call.error":           {"connection", "timeout", "status", "empty", "other"},
		"tool.error":               {"validation", "not_found", "rejected"},
		"approval.response":        {"approve", "approve_for_session", "reject"},
		"strategy.decide.response": {"llm", "tool", "memory", "done"},
	} {
		k, _ := event.Lookup(kind)
		s, err := k.Schema()
		if err != nil {
			t.Fatal(err)
		}
		var flat bytes.Buffer
		if err := json.Compact(&flat, s); err != nil {
			t.Fatal(err)
		}
		list, _ := json.Marshal(values)
		if !strings.Contains(flat.String(), `"enum":`+string(list)) {
			t.Errorf("%s: the schema does not close the set %s:\n%s", kind, list, flat.String())
		}
	}
}

// Y-29: no kind means other.
func TestMissingLLMErrorKindMeansOther(t *testing.T) {
	if got := (event.LLMError{Error: "x"}).EffectiveKind(); got != event.LLMOther {
		t.Errorf("got %q, want %q", got, event.LLMOther)
	}
	if got := (event.LLMError{Kind: event.LLMStatus}).EffectiveKind(); got != event.LLMStatus {
		t.Errorf("got %q, want %q", got, event.LLMStatus)
	}
}

// Y-55.
func TestPrefixHint(t *testing.T) {
	for key, want := range map[string]string{"plugin.llm_openai.api_key": "plugin.llm_openai.", "provider": "", "a.": "a."} {
		if got := event.PrefixHint(key); got != want {
			t.Errorf("%q: got %q, want %q", key, got, want)
		}
	}
}

// Y-65, Y-66: each emitter may use only certain session ids.
func TestSessionIDs(t *testing.T) {
	for id, want := range map[string]struct{ client, bus bool }{
		"s1":                                  {true, true},
		"sess_01-X":                           {true, true},
		"kernel":                              {false, true},
		"_bridge:mcp-bridge":                  {false, true},
		"_bridge:web-api-test:0a1b":           {false, true},
		"_bridge:":                            {false, false},
		"_bridge:../../etc":                   {false, false},
		"p::agent::0a1b":                      {false, true},
		"p::agent::":                          {false, false},
		"":                                    {false, false},
		"a/b":                                 {false, false},
		"a\nb":                                {false, false},
		"..":                                  {false, false},
		strings.Repeat("a", 128):              {true, true},
		strings.Repeat("a", 129):              {false, false},
		"_bridge:" + strings.Repeat("a", 200): {false, false},
	} {
		if err := event.CheckClientSession(id); (err == nil) != want.client {
			t.Errorf("client session %q: got %v, want ok=%v", id, err, want.client)
		}
		if err := event.CheckSession(id); (err == nil) != want.bus {
			t.Errorf("session %q: got %v, want ok=%v", id, err, want.bus)
		}
	}
}

// Y-64: plugin-private code can declare private kinds only, and none twice.
func TestExtensionsCannotBePublic(t *testing.T) {
	for _, name := range []string{"user.message.private", "tool.call.result", "x.alone", "X.a.b"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was declared as an extension", name)
				}
			}()
			event.DefineExtension[event.Empty](name, event.Reliable)
		}()
	}
	once := fmt.Sprintf("x.test.once%d", time.Now().UnixNano()) // the catalogue outlives a repeated test
	event.DefineExtension[event.Empty](once, event.Reliable)
	defer func() {
		if recover() == nil {
			t.Error("an extension was declared twice")
		}
	}()
	event.DefineExtension[event.Empty](once, event.Reliable)
}

// Y-16, Y-63.
func TestKindLookup(t *testing.T) {
	for kind, want := range map[string]bool{
		"user.interrupt": true, "x.mcp.server.ready": true, "x.agent-tool.a": true,
		"x.mcp": false, "x..a": false, "X.a.b": false, "user.unknown": false, "": false,
		"x.a." + strings.Repeat("b", 200): false,
	} {
		if _, ok := event.Lookup(kind); ok != want {
			t.Errorf("%q: known=%v, want %v", kind, ok, want)
		}
	}
}

// Y-18 and the edge rule: ts survives a round trip to the microsecond.
func TestEnvelopeRoundTrip(t *testing.T) {
	in := []byte(`{"id":"1","kind":"tool.call.start","session_id":"s","ts":1795257342.123456,"source":"kernel","payload":{"id":"c","name":"n","args":{"big":123456789012345678901234567890}}}`)
	var ev event.Event
	if err := json.Unmarshal(in, &ev); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(ev)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), `"big":123456789012345678901234567890`) {
		t.Errorf("integers changed: %s", out)
	}
	if !strings.Contains(string(out), `"ts":1795257342.123456`) {
		t.Errorf("got %s, want the ts as it was", out)
	}
	if err := json.Unmarshal([]byte(`{"kind":"no.such.kind","payload":{}}`), &ev); err == nil {
		t.Error("an unknown kind was decoded")
	}
	if fmt.Sprint(event.UserMessageReceived.Name()) != "user.message.received" {
		t.Error("topic name")
	}
}

// The time of an event survives JSON to the microsecond.
func TestTimeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := time.UnixMicro(rapid.Int64Range(0, 4_000_000_000_000_000).Draw(t, "microseconds")).UTC() // up to 2096
		raw, err := json.Marshal(event.Event{ID: "1", Kind: "user.message.received", SessionID: "s", Time: want, Payload: event.UserMessage{}})
		if err != nil {
			t.Fatal(err)
		}
		var got event.Event
		if err := json.Unmarshal(raw, &got); err != nil || !got.Time.Equal(want) {
			t.Fatalf("of %s: got %v, %v; want %v", raw, got.Time, err, want)
		}
	})
}

// Y-17: the ids of sessions are those that match the pattern, which errors name.
func TestSessionNames(t *testing.T) {
	pattern := regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
	ids := []string{"", "a", "sess_1-Z", strings.Repeat("a", 128), strings.Repeat("a", 129), "a\n", "\na", "a b", "ä", "a\x00", "a/b", ".."}
	for c := range 256 {
		ids = append(ids, "a"+string([]byte{byte(c)}))
	}
	for _, id := range ids {
		if got, want := event.CheckSession(id) == nil, pattern.MatchString(id); got != want {
			t.Errorf("CheckSession(%q): accepted %v, want %v", id, got, want)
		}
	}
}
