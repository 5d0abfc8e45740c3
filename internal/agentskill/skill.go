package agentskill

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"golang.org/x/text/unicode/norm"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/worded"
)

// FileName is the name of the file that makes a folder a skill.
const FileName = "SKILL.md"

// Bounds of a skill, those of the specification in characters.
const (
	MaxName          = 64
	MaxDescription   = 1024
	MaxCompatibility = 500
	// MaxFile is the size of the largest file of a skill that is read, in bytes.
	MaxFile = 1 << 20

	maxFrontMatter = 32 << 10 // bytes
	maxMetadata    = 100      // entries
	maxShown       = 60       // bytes of a value, in an error
)

// Skill holds the front matter of a skill.
type Skill struct {
	Name          string            `json:"name"`
	Description   string            `json:"description"`
	License       string            `json:"license,omitempty"`
	Compatibility string            `json:"compatibility,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty"`
	AllowedTools  string            `json:"allowed_tools,omitempty"`
	// Manual says that only a person uses the skill: models do not see it. It is the
	// field disable-model-invocation of Claude Code.
	Manual bool `json:"manual,omitempty"`
	// Warnings are deviations from the specification with which the skill still works.
	Warnings []string `json:"warnings,omitempty"`
}

// Parse reads the content of a SKILL.md. folder is the name of the skill's folder. The error
// lists every broken rule.
func Parse(data []byte, folder string) (Skill, string, error) {
	front, body, err := split(data)
	if err != nil {
		return Skill{}, "", err
	}
	var s Skill
	fields, err := decode(front)
	if err != nil {
		again, ok := quoted(front)
		if !ok {
			return Skill{}, "", err
		}
		if fields, ok = retried(again); !ok {
			return Skill{}, "", err
		}
		s.Warnings = append(s.Warnings, `a value with ": " has no quotes, which is not YAML: put it in quotes`)
	}
	errs := s.fill(fields)
	s.Name = norm.NFKC.String(s.Name)
	errs = append(errs, checkName(s.Name, folder)...)
	switch n := utf8.RuneCountInString(s.Description); {
	case n == 0:
		errs = append(errs, errors.New("description is missing or empty"))
	case n > MaxDescription:
		errs = append(errs, fmt.Errorf("description has %d characters, %d at most", n, MaxDescription))
	}
	if n := utf8.RuneCountInString(s.Compatibility); n > MaxCompatibility {
		errs = append(errs, fmt.Errorf("compatibility has %d characters, %d at most", n, MaxCompatibility))
	}
	return s, body, join(errs)
}

func retried(front string) (map[string]*yaml.Node, bool) {
	fields, err := decode(front)
	return fields, err == nil
}

// join makes one line of errors.
func join(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return faults(errs)
}

type faults []error

func (f faults) Error() string {
	texts := make([]string, len(f))
	for i, err := range f {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (f faults) Unwrap() []error { return f }

// split takes a file apart: the front matter between two lines of three dashes, and the body.
func split(data []byte) (front, body string, err error) {
	if !utf8.Valid(data) || slices.Contains(data, 0) {
		return "", "", errors.New("not text in UTF-8")
	}
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t") != "---" {
		return "", "", errors.New("no front matter: the first line must be ---")
	}
	for at := 0; at < len(rest); {
		line, _, more := strings.Cut(rest[at:], "\n")
		end := at + len(line)
		if strings.TrimRight(line, " \t") == "---" {
			if at > maxFrontMatter {
				break
			}
			return rest[:at], strings.TrimSpace(rest[end:]), nil
		}
		if at = end + 1; !more || at > maxFrontMatter {
			break
		}
	}
	return "", "", fmt.Errorf("no line --- ends the front matter within %d bytes", maxFrontMatter)
}

// decode reads front matter as a mapping. Aliases are refused: a few bytes of them stand for
// gigabytes.
func decode(front string) (map[string]*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(front), &doc); err != nil {
		return nil, worded.Error(err, "front matter is not YAML: %s", strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " "))
	}
	if len(doc.Content) == 0 {
		return map[string]*yaml.Node{}, nil
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("front matter is not a mapping")
	}
	if anchored(&doc) {
		return nil, errors.New("front matter has an anchor or an alias")
	}
	top := doc.Content[0].Content
	out := map[string]*yaml.Node{}
	for i := 0; i+1 < len(top); i += 2 {
		key := top[i].Value
		if top[i].Kind != yaml.ScalarNode || out[key] != nil {
			return nil, fmt.Errorf("front matter has the field %s twice, or with a name that is not text", shown(key))
		}
		out[key] = top[i+1]
	}
	return out, nil
}

func anchored(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || n.Anchor != "" || slices.ContainsFunc(n.Content, anchored)
}

// quoted puts values with ": " in quotes: skills that were written for other clients have
// them, and are then not YAML.
func quoted(front string) (string, bool) {
	lines, changed := strings.Split(front, "\n"), false
	for i, l := range lines {
		key, value, ok := strings.Cut(l, ": ")
		if value = strings.TrimSpace(value); !ok || !strings.Contains(value, ": ") || strings.ContainsAny(key, " \t\"'#") || strings.ContainsAny(value[:1], "\"'|>[{&*!") {
			continue
		}
		lines[i], changed = key+": '"+strings.ReplaceAll(value, "'", "''")+"'", true
	}
	return strings.Join(lines, "\n"), changed
}

// fill takes the fields over.
func (s *Skill) fill(fields map[string]*yaml.Node) (errs []error) {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		node := fields[name]
		into := map[string]*string{"name": &s.Name, "description": &s.Description, "license": &s.License, "compatibility": &s.Compatibility, "allowed-tools": &s.AllowedTools}[name]
		switch {
		case name == "metadata":
			errs = append(errs, s.metadata(node)...)
		case name == "disable-model-invocation":
			s.Manual = node.Value == "true"
		case into == nil:
			s.Warnings = append(s.Warnings, fmt.Sprintf("the specification has no field %s: it is ignored", shown(name)))
		case node.Kind == yaml.ScalarNode:
			if node.Tag != "!!null" {
				*into = strings.TrimSpace(node.Value)
			}
		case name == "allowed-tools" && node.Kind == yaml.SequenceNode:
			s.Warnings = append(s.Warnings, "allowed-tools is a list, and should be a text with spaces")
			var all []string
			for _, item := range node.Content {
				all = append(all, item.Value)
			}
			*into = strings.Join(all, " ")
		default:
			errs = append(errs, fmt.Errorf("%s is not a text", name))
		}
	}
	if c := fields["compatibility"]; c != nil && s.Compatibility == "" && c.Kind == yaml.ScalarNode {
		errs = append(errs, errors.New("compatibility is empty"))
	}
	return errs
}

func (s *Skill) metadata(node *yaml.Node) (errs []error) {
	if node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
		return nil
	}
	if node.Kind != yaml.MappingNode || len(node.Content) > 2*maxMetadata {
		return []error{fmt.Errorf("metadata is not a mapping of at most %d entries", maxMetadata)}
	}
	s.Metadata = map[string]string{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Kind != yaml.ScalarNode || value.Kind != yaml.ScalarNode {
			s.Warnings = append(s.Warnings, fmt.Sprintf("metadata.%s is not a text: it is ignored", shown(key.Value)))
			continue
		}
		s.Metadata[key.Value] = value.Value
	}
	return nil
}

// checkName checks a name, which the specification compares in the normal form NFKC.
func checkName(name, folder string) (errs []error) {
	if name == "" {
		return []error{errors.New("name is missing or empty")}
	}
	if n := utf8.RuneCountInString(name); n > MaxName {
		errs = append(errs, fmt.Errorf("name has %d characters, %d at most", n, MaxName))
	}
	bad := func(r rune) bool { return r != '-' && !unicode.IsLetter(r) && !unicode.IsNumber(r) }
	switch {
	case strings.ContainsFunc(name, bad):
		errs = append(errs, fmt.Errorf("name %s has characters other than lowercase letters, digits and hyphens", shown(name)))
	case name != strings.ToLower(name):
		errs = append(errs, fmt.Errorf("name %s is not lowercase", shown(name)))
	case strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") || strings.Contains(name, "--"):
		errs = append(errs, fmt.Errorf("name %s starts or ends with a hyphen, or has two in a row", shown(name)))
	}
	if at := norm.NFKC.String(folder); at != name {
		errs = append(errs, fmt.Errorf("name %s is not the name of its folder, %s", shown(name), shown(at)))
	}
	return errs
}

// CheckName returns an error if a skill cannot have a name.
func CheckName(name string) error { return join(checkName(norm.NFKC.String(name), name)) }

// shown quotes a value of a file for an error: escaped, and cut.
func shown(s string) string {
	return fmt.Sprintf("%+q", cut.Text(s, maxShown))
}
