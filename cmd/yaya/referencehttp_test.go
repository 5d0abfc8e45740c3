package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// openAPIDocument is the part of an OpenAPI document that the reference shows.
type openAPIDocument struct {
	Info       struct{ Description string }
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]schema }
}

type operation struct {
	Summary, Description string
	Tags                 []string
	Parameters           []struct {
		Name, In, Description string
		Required              bool
		Schema                schema
	}
	RequestBody struct {
		Content map[string]struct{ Schema schema }
	}
	Responses map[string]struct {
		Description string
		Content     map[string]struct{ Schema schema }
	}
}

// schema is the part of a JSON Schema that the reference shows. true is a schema, too.
type schema struct {
	Ref         string `json:"$ref"`
	Type        any
	Format      string
	Description string
	Enum        []any
	Required    []string
	Properties  map[string]schema
	Items       *schema
	Minimum     *float64
	Maximum     *float64
	MaxLength   int
	Default     any
	// AdditionalProperties is a schema or a boolean.
	AdditionalProperties json.RawMessage
}

func (s *schema) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] != '{' {
		return nil
	}
	type plain schema
	return json.Unmarshal(data, (*plain)(s))
}

// kind is the type of a schema in a cell of a table; schemas with names are links.
func (s schema) kind() string {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return fmt.Sprintf("[%s](#%s-schema)", name, strings.ToLower(name))
	}
	var types []string
	switch x := s.Type.(type) {
	case string:
		types = []string{x}
	case []any:
		for _, one := range x {
			types = append(types, fmt.Sprint(one))
		}
	}
	types = slices.DeleteFunc(types, func(t string) bool { return t == "null" })
	out := strings.Join(types, " or ")
	switch {
	case s.Items != nil:
		out = "list of " + s.Items.kind()
	case len(s.Enum) > 0:
		var words []string
		for _, e := range s.Enum {
			words = append(words, fmt.Sprintf("`%v`", e))
		}
		return strings.Join(words, ", ")
	case out == "":
		out = "any JSON"
	}
	if s.Minimum != nil && s.Maximum != nil {
		out += fmt.Sprintf(", %s to %s", number(*s.Minimum), number(*s.Maximum))
	}
	if s.MaxLength > 0 {
		out += fmt.Sprintf(", at most %d characters", s.MaxLength)
	}
	if s.Default != nil {
		out += fmt.Sprintf(", default `%v`", s.Default)
	}
	return out
}

func number(f float64) string { return fmt.Sprintf("%.0f", f) }

// table writes the members of an object, those of nested objects with their path.
func (s schema) table(b *strings.Builder, prefix string) {
	if len(s.Properties) == 0 {
		return
	}
	fmt.Fprint(b, "\n| member | type | meaning |\n|---|---|---|\n")
	s.rows(b, prefix, 0)
}

func (s schema) rows(b *strings.Builder, prefix string, depth int) {
	for _, name := range sorted(s.Properties) {
		p := s.Properties[name]
		text := inMarkdown(p.Description)
		if !slices.Contains(s.Required, name) {
			text = strings.TrimSuffix("optional; "+text, "; ")
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", prefix+name, cell(p.kind()), cell(text))
		if depth < 2 {
			switch {
			case len(p.Properties) > 0:
				p.rows(b, prefix+name+".", depth+1)
			case p.Items != nil && len(p.Items.Properties) > 0:
				p.Items.rows(b, prefix+name+"[].", depth+1)
			}
		}
	}
}

// reference is the document as a page: operations by subject, then the schemas.
func (d openAPIDocument) reference(t *testing.T, title, text string) string {
	t.Helper()
	var b strings.Builder
	head(&b, title, "the OpenAPI document that yaya serves", text+" "+d.Info.Description)
	byTag := map[string][]string{} // each "PATH METHOD"
	for path, methods := range d.Paths {
		for method, o := range methods {
			if len(o.Tags) != 1 {
				t.Errorf("%s %s has the tags %q, want one", method, path, o.Tags)
				continue
			}
			byTag[o.Tags[0]] = append(byTag[o.Tags[0]], path+" "+method)
		}
	}
	for _, tag := range sorted(byTag) {
		fmt.Fprintf(&b, "\n## %s\n", upper(strings.ReplaceAll(tag, "-", " ")))
		slices.Sort(byTag[tag])
		for _, at := range byTag[tag] {
			path, method, _ := strings.Cut(at, " ")
			d.Paths[path][method].write(&b, strings.ToUpper(method)+" "+path)
		}
	}
	fmt.Fprint(&b, "\n## Schemas\n")
	for _, name := range sorted(d.Components.Schemas) {
		s := d.Components.Schemas[name]
		fmt.Fprintf(&b, "\n### %s (schema)\n", name)
		if s.Description != "" {
			fmt.Fprintf(&b, "\n%s\n", inMarkdown(s.Description))
		}
		if len(s.Properties) == 0 {
			fmt.Fprintf(&b, "\n%s\n", upper(s.kind()))
		}
		s.table(&b, "")
	}
	return b.String()
}

func (o operation) write(b *strings.Builder, at string) {
	fmt.Fprintf(b, "\n### %s\n\n%s. %s\n", inMarkdown(at), inMarkdown(o.Summary), o.Description)
	if len(o.Parameters) > 0 {
		fmt.Fprint(b, "\n| parameter | in | type | meaning |\n|---|---|---|---|\n")
		for _, p := range o.Parameters {
			text := inMarkdown(p.Description)
			if !p.Required {
				text = strings.TrimSuffix("optional; "+text, "; ")
			}
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", p.Name, p.In, cell(p.Schema.kind()), cell(text))
		}
	}
	for _, media := range sorted(o.RequestBody.Content) {
		fmt.Fprintf(b, "\nBody (`%s`): %s.\n", media, o.RequestBody.Content[media].Schema.kind())
	}
	var answers []string
	for _, status := range sorted(o.Responses) {
		if status == "default" {
			continue // the same error for all
		}
		answer := "`" + status + "`"
		for _, media := range sorted(o.Responses[status].Content) {
			answer += " " + o.Responses[status].Content[media].Schema.kind()
			if media != "application/json" {
				answer += " (`" + media + "`)"
			}
		}
		answers = append(answers, answer)
	}
	fmt.Fprintf(b, "\nAnswers: %s.\n", strings.Join(answers, "; "))
}
