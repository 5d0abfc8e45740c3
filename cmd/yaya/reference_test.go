package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/plane"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
)

// docs/reference is what the code says today: the tree of commands, the settings, the events,
// the OpenAPI documents that yaya serves, the wire protocol, JSON-RPC, and methods of MCP.
func TestReference(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.serve()
	openAPI := func(path string) (d openAPIDocument) {
		code, raw, _ := b.raw("GET", path, "")
		if err := json.Unmarshal(raw, &d); err != nil || code != http.StatusOK {
			t.Fatalf("GET %s = %d, %v; want a document", path, code, err)
		}
		return d
	}
	for name, text := range map[string]string{
		"CLI.md":      referenceCLI(t),
		"SETTINGS.md": referenceSettings(t),
		"API.md":      openAPI("/api/openapi.json").reference(t, "The admin API", "`/api`. [The page](../DASHBOARD.md#the-admin-api) says what changes of servers, secrets and masks mean."),
		"V1.md":       openAPI("/v1/openapi.json").reference(t, "The session API", "`/v1`. [Sessions](../SESSIONS.md) says what things mean and how they work together, and what the events of a session are."),
		"EVENTS.md":   referenceEvents(t),
		"WIRE.md":     referenceWire(t),
		"RPC.md":      referenceRPC(t),
		"METHODS.md":  referenceMCP(t),
	} {
		file := filepath.Join("..", "..", "docs", "reference", name)
		if *updateDocs {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != text {
			t.Errorf("docs/reference/%s is stale: go test ./cmd/yaya -run TestReference -update-docs, and review the change (%v)", name, err)
		}
	}
}

// head begins a page of the reference.
func head(b *strings.Builder, title, from, text string) {
	fmt.Fprintf(b, "# %s\n\n<!-- Made by go test ./cmd/yaya -run TestReference -update-docs. -->\n\nMade from %s. %s\n", title, from, text)
}

// cell is text in a table.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", "\\|")
}

func coded(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// exitCodes say what each exit code means. TestErrorCodesAreExplained has their causes and remedies.
var exitCodes = map[string]string{
	"exitOK": "the command did what it says", "exitError": "it failed, or a check found something", "exitUsage": "a mistake on the command line",
	"exitStopped": "`yaya service status`: the service does not run", "exitNotInstalled": "`yaya service status`: the service is not installed",
	"exitCannotRun": "a program that the command should run cannot be run", "exitNotFound": "a program that the command should run is not there",
}

func referenceCLI(t *testing.T) string {
	var b strings.Builder
	head(&b, "Command line", "the tree of commands", "`yaya COMMAND --help` prints the same. [Configuration](../CONFIG.md#commands-beside-a-running-yaya) says how commands work beside a running yaya.")
	fmt.Fprint(&b, "\n## Exit codes\n\n| code | means |\n|---|---|\n")
	codes := constants(t, "exit")
	names := sorted(codes)
	slices.SortFunc(names, func(x, y string) int {
		a, _ := strconv.Atoi(codes[x])
		c, _ := strconv.Atoi(codes[y])
		return cmp.Compare(a, c)
	})
	for _, name := range names {
		if exitCodes[name] == "" {
			t.Errorf("exitCodes lacks %s, want what it means", name)
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", codes[name], exitCodes[name])
	}
	fmt.Fprint(&b, "\n[Troubleshooting](../TROUBLESHOOTING.md#exit-codes) says what to do.\n\n## Flags of every command\n\n")
	root := newRoot()
	flagTable(&b, root.PersistentFlags())
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			return
		}
		if c != root {
			fmt.Fprintf(&b, "\n## %s\n\n", c.CommandPath())
			if c.Runnable() {
				fmt.Fprintf(&b, "```text\n%s\n```\n\n", c.UseLine())
			}
			if len(c.Aliases) > 0 {
				fmt.Fprintf(&b, "Also `%s`.\n\n", strings.Join(c.Aliases, "`, `"))
			}
			fmt.Fprint(&b, prose(cmp.Or(c.Long, c.Short+".")))
			if c.Example != "" {
				fmt.Fprintf(&b, "\n```text\n%s\n```\n", strings.TrimRight(c.Example, "\n "))
			}
			own := c.NonInheritedFlags()
			if own.HasAvailableFlags() {
				fmt.Fprint(&b, "\n")
				flagTable(&b, own)
			}
		}
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(root)
	return b.String()
}

// prose is a help text as Markdown: indented lines are code.
func prose(long string) string {
	var b strings.Builder
	code := false
	for l := range strings.SplitSeq(strings.TrimSpace(long), "\n") {
		indented := strings.HasPrefix(l, " ") || strings.HasPrefix(l, "\t")
		if indented != code && l != "" {
			b.WriteString(map[bool]string{true: "\n```text\n", false: "```\n\n"}[indented])
			code = indented
		}
		if !code {
			l = inMarkdown(l)
		}
		b.WriteString(l + "\n")
	}
	if code {
		b.WriteString("```\n")
	}
	return b.String()
}

// inMarkdown keeps Markdown from taking a character of plain text for its own.
func inMarkdown(s string) string {
	return strings.NewReplacer("<", "\\<", "*", "\\*", "_", "\\_", "[", "\\[").Replace(s)
}

func flagTable(b *strings.Builder, f *pflag.FlagSet) {
	fmt.Fprint(b, "| flag | value | default | meaning |\n|---|---|---|---|\n")
	f.VisitAll(func(x *pflag.Flag) {
		if x.Hidden {
			return
		}
		name := "--" + x.Name
		if x.Shorthand != "" {
			name = "-" + x.Shorthand + ", " + name
		}
		value, text := pflag.UnquoteUsage(x)
		def := x.DefValue
		if slices.Contains([]string{"", "[]", "false", "0", "0s"}, def) {
			def = ""
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, coded(value), coded(def), cell(inMarkdown(text)))
	})
}

// constants are those of this package whose names begin with a word, with their values.
func constants(t *testing.T, prefix string) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		inspect(t, file, func(n ast.Node) {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 && strings.HasPrefix(v.Names[0].Name, prefix) {
				if lit, ok := v.Values[0].(*ast.BasicLit); ok && lit.Kind == token.INT {
					out[v.Names[0].Name] = lit.Value
				}
			}
		})
	}
	return out
}

func inspect(t *testing.T, file string, look func(ast.Node)) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if n != nil {
			look(n)
		}
		return true
	})
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

var wantedValue = regexp.MustCompile(`must be (.*), not `)

func referenceSettings(t *testing.T) string {
	var b strings.Builder
	head(&b, "Settings", "`kernel/config`", "[Configuration](../CONFIG.md#settings) explains them, and where a setting comes from. A change holds at once unless the table says \"at the start\".")
	fmt.Fprint(&b, "\n| key | default | value | variable | meaning |\n|---|---|---|---|---|\n")
	for _, k := range config.Keys {
		value := "text"
		if err := config.CheckValue(k.Name, json.RawMessage(`{"x":1}`)); err != nil {
			if m := wantedValue.FindStringSubmatch(err.Error()); m != nil {
				value = m[1]
			}
		}
		def := coded(strings.Trim(k.Default, `"`))
		if k.Default == "" {
			def = k.Unset()
		}
		doc := k.Doc
		if config.NeedsRestart(k.Name) && !strings.Contains(doc, "at the start") {
			doc += "; read at the start"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` | %s |\n", k.Name, cell(def), cell(inMarkdown(value)), config.EnvName(k.Name), cell(inMarkdown(doc)))
	}
	return b.String()
}

func referenceEvents(t *testing.T) string {
	var b strings.Builder
	head(&b, "Events", "the catalogue of `kernel/event`", "[Events](../PROTOCOL.md) says what each is for and who gets it; [events/](../events/) has the JSON Schema of each payload.")
	files, err := filepath.Glob("../../docs/events/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		kind, known := event.Lookup(name)
		if !known {
			t.Fatalf("docs/events/%s.json is of no event of the catalogue", name)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var s schema
		if err := json.Unmarshal(data, &s); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s. [Schema](../events/%s.json).\n", name, deliveries[kind.Class], name)
		s.table(&b, "")
	}
	return b.String()
}

// deliveries say what each class of events means for a reader.
var deliveries = map[event.Class]string{event.Reliable: "Reliable: a reader that cannot keep up is ended", event.Lossy: "Lossy: a reader that cannot keep up misses some"}

func referenceWire(t *testing.T) string {
	var doc struct {
		Channels map[string]struct {
			Address  *string
			Messages map[string]struct {
				Name, Summary string
				Payload       schema
			}
		}
		Components struct{ Schemas map[string]schema }
	}
	data, err := os.ReadFile(asyncAPI)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	head(&b, "Messages on WebSockets", "[asyncapi.json](../asyncapi.json), which is made from the Go types", "[Wire protocol](../WIRE.md) describes the handshake, frames, cursors and limits.")
	for _, channel := range sorted(doc.Channels) {
		c := doc.Channels[channel]
		title := "The handshake"
		if c.Address != nil {
			title = "`" + *c.Address + "`"
		}
		fmt.Fprintf(&b, "\n## %s\n", title)
		for _, id := range sorted(c.Messages) {
			m := c.Messages[id]
			who, _, _ := strings.Cut(id, ".")
			from := map[string]string{"server": "yaya", "client": "the client"}[who]
			if m.Name == "phx_reply" {
				fmt.Fprintf(&b, "\n### %s, answered by yaya\n", inMarkdown(strings.TrimSuffix(strings.TrimPrefix(id, "client."), ".reply")))
			} else {
				fmt.Fprintf(&b, "\n### %s, from %s\n\n%s\n", inMarkdown(m.Name), from, inMarkdown(m.Summary))
			}
			s := doc.Components.Schemas[strings.TrimPrefix(m.Payload.Ref, "#/components/schemas/")]
			s.table(&b, "")
		}
	}
	return b.String()
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// referenceRPC reads the table of methods and what each reads from its params.
func referenceRPC(t *testing.T) string {
	const file = "../../gateway/rpc/methods.go"
	type rpcMethod struct{ name, scope, handler string }
	var methods []rpcMethod
	docs, params := map[string]string{}, map[string][]string{}
	scopes := map[string]string{}
	inspect(t, "../../auth/principal.go", func(n ast.Node) {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
			if lit, ok := v.Values[0].(*ast.BasicLit); ok {
				scopes[v.Names[0].Name], _ = strconv.Unquote(lit.Value)
			}
		}
	})
	inspect(t, file, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			key, isText := n.Key.(*ast.BasicLit)
			value, isMethod := n.Value.(*ast.CompositeLit)
			if !isText || !isMethod || len(value.Elts) != 2 {
				return
			}
			m := rpcMethod{name: strings.Trim(key.Value, `"`)}
			if s, ok := value.Elts[0].(*ast.SelectorExpr); ok {
				m.scope = scopes[s.Sel.Name]
			}
			m.handler = value.Elts[1].(*ast.SelectorExpr).Sel.Name
			methods = append(methods, m)
		case *ast.FuncDecl:
			docs[n.Name.Name] = n.Doc.Text()
			ast.Inspect(n, func(x ast.Node) bool {
				if f, ok := x.(*ast.Field); ok && f.Tag != nil {
					tag, _ := strconv.Unquote(f.Tag.Value)
					params[n.Name.Name] = append(params[n.Name.Name], strings.Trim(strings.TrimPrefix(tag, "json:"), `"`))
				}
				return true
			})
		}
	})
	if len(methods) < 6 {
		t.Errorf("%s has %d methods, want at least 6: this test no longer finds them", file, len(methods))
	}
	var b strings.Builder
	head(&b, "JSON-RPC", "the table of methods of `gateway/rpc`", "`POST /rpc`; [JSON-RPC](../WIRE.md#json-rpc) describes results, errors and batches.")
	fmt.Fprint(&b, "\n| method | needs scope | members of params |\n|---|---|---|\n")
	for _, m := range methods {
		if m.scope == "" {
			m.scope = string(auth.SkillsInvoke) // the plane asks for it
		}
		read := params[m.handler]
		if m.name == "skill.invoke" {
			for f := range reflect.TypeFor[plane.Invocation]().Fields() {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				read = append(read, name)
			}
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", m.name, m.scope, coded(strings.Join(read, "`, `")))
	}
	return b.String()
}

// referenceMCP reads which methods the server of MCP dispatches on.
func referenceMCP(t *testing.T) string {
	var b strings.Builder
	head(&b, "Methods of MCP", "the dispatcher of `mcpbridge/downstream`", "`/mcp`, `/mcp/<profile>` and `yaya mcp serve`. [MCP](../MCP.md) says what yaya does with each, and what was seen with real clients and servers. A method of an extension passes to the server that declares it.")
	fmt.Fprint(&b, "\n| method | eras |\n|---|---|\n")
	eras := map[string]string{}
	inspect(t, "../../mcpbridge/downstream/server.go", func(n ast.Node) {
		f, ok := n.(*ast.FuncDecl)
		if !ok || f.Name.Name != "dispatch" {
			return
		}
		// The switch in the branch for the legacy era is nested.
		for _, s := range f.Body.List {
			cases(s, func(method string, nested bool) {
				switch {
				case nested:
					eras[method] = "legacy"
				case method == "server/discover" || method == "subscriptions/listen" || strings.HasPrefix(method, "tasks/"):
					eras[method] = "modern"
				default:
					eras[method] = "both"
				}
			})
		}
	})
	if len(eras) < 15 {
		t.Errorf("the dispatcher has %d methods, want at least 15: this test no longer finds them", len(eras))
	}
	for _, method := range sorted(eras) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", method, eras[method])
	}
	return b.String()
}

// cases reports the texts of the cases of a statement, and whether they stand in an if.
func cases(s ast.Stmt, found func(text string, nested bool)) {
	_, nested := s.(*ast.IfStmt)
	ast.Inspect(s, func(n ast.Node) bool {
		if c, ok := n.(*ast.CaseClause); ok {
			for _, e := range c.List {
				if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					text, _ := strconv.Unquote(lit.Value)
					found(text, nested)
				}
			}
		}
		return true
	})
}
