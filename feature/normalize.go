package feature

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/invisible"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Bounds of providers' descriptions.
const (
	MaxTools       = 500
	MaxToolName    = 256      // bytes of a tool's own name
	MaxTitle       = 256      // bytes
	MaxDescription = 64 << 10 // bytes
	MaxAnnotations = 4 << 10  // bytes
	MaxNative      = 256 << 10
)

const maxName = 64

// QualifiedName returns the registered name of a provider's tool:
// "<prefix>__<tool>". It depends only on these two, so it is stable across restarts
// and configurations. Different pairs have different names: where the plain form
// would be illegal, too long or ambiguous, the name contains a hash of the pair.
func QualifiedName(prefix, name string) string {
	plain := prefix + "__" + name
	ambiguous := strings.Contains(prefix, "__") || strings.HasSuffix(prefix, "_")
	if !ambiguous && len(plain) <= maxName && tool.NamePattern().MatchString(plain) {
		return plain
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(prefix), prefix, name))
	tail := "_" + hex.EncodeToString(sum[:5])
	p, n := legal(prefix), legal(name)
	p = strings.Trim(strings.ReplaceAll(p, "__", "_"), "_")
	if len(p) > 24 {
		p = p[:24]
	}
	if room := maxName - len(p) - 2 - len(tail); len(n) > room {
		n = n[:room]
	}
	return p + "__" + n + tail
}

// legal replaces characters that a tool name cannot contain.
func legal(s string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, s)
}

// define turns a provider's description into a definition. It fails for a tool that
// cannot be offered; the provider's other tools stay usable.
func define(info Info, s Spec) (tool.Definition, error) {
	prefix := info.Prefix
	if prefix == "" {
		prefix = info.ID
	}
	switch {
	case s.Name == "":
		return tool.Definition{}, fmt.Errorf("a tool without a name")
	case len(s.Name) > MaxToolName:
		return tool.Definition{}, fmt.Errorf("tool %s…: its name has %d bytes, the limit is %d", Clean(s.Name[:32], 64), len(s.Name), MaxToolName)
	case len(s.Native) > MaxNative:
		return tool.Definition{}, fmt.Errorf("tool %s: its definition has %d bytes, the limit is %d", Clean(s.Name, 64), len(s.Native), MaxNative)
	case len(s.Annotations) > MaxAnnotations:
		return tool.Definition{}, fmt.Errorf("tool %s: its annotations have %d bytes, the limit is %d", Clean(s.Name, 64), len(s.Annotations), MaxAnnotations)
	}
	name := QualifiedName(prefix, s.Name)
	if info.Bare && tool.NamePattern().MatchString(s.Name) {
		name = s.Name
	}
	def := tool.Definition{
		Name:         name,
		Identity:     tool.Identity{Provider: info.ID, Tool: s.Name},
		Title:        Clean(s.Title, MaxTitle),
		Description:  Clean(s.Description, MaxDescription),
		InputSchema:  s.InputSchema,
		OutputSchema: s.OutputSchema,
		Annotations:  s.Annotations,
		Kind:         s.Kind,
		Timeout:      s.Timeout,
		Validate:     s.Validate,
		Native:       s.Native,
	}
	if s.Withheld != "" {
		def = tool.Definition{Name: name, Identity: def.Identity, Kind: s.Kind}
	}
	if len(def.InputSchema) == 0 {
		def.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	if err := tool.CheckDefinition(def); err != nil {
		return tool.Definition{}, err
	}
	return def, nil
}

// Clean makes untrusted text safe to show and bounded: control characters,
// bidirectional overrides, zero-width and other invisible characters become visible escapes,
// except line breaks and tabs, and the selectors that emoji consist of. A cut is marked.
func Clean(s string, limit int) string {
	return clean(s, limit, func(_, _ rune) bool { return false })
}

// Prose is [Clean] for what people and models write: joiners, soft hyphens and variation selectors,
// without which words of some scripts are wrong and emoji fall apart, stay.
func Prose(s string, limit int) string { return clean(s, limit, invisible.OfProse) }

func clean(s string, limit int, kept func(before, r rune) bool) string {
	const mark = "… [cut]"
	var b strings.Builder
	var before rune
	for i, r := range s {
		piece := string(r)
		switch {
		case r == '\n', r == '\t', kept(before, r), invisible.OfEmoji(before, r, s[min(len(s), i+len(piece)):]):
		case r == utf8.RuneError, unicode.Is(unicode.C, r), invisible.Is(r):
			// C holds the unassigned characters, too.
			piece = fmt.Sprintf(`\u{%x}`, r)
		}
		before = r
		if b.Len()+len(piece) > limit {
			return cut.Bytes(b.String(), limit-len(mark)) + mark
		}
		b.WriteString(piece)
	}
	return b.String()
}
