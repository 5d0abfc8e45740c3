package tool

import (
	"encoding/json"
	"fmt"
	"html"
	"strings"
	"unicode/utf8"

	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// ErrorKind classifies a result that is not OK (Y-123); more kinds may come.
type ErrorKind string

// The kinds of failure. Denied, timed out and cancelled are three things.
const (
	ErrValidation  ErrorKind = "validation"
	ErrNotFound    ErrorKind = "not_found"
	ErrRejected    ErrorKind = "rejected"
	ErrTimeout     ErrorKind = "timeout"
	ErrCancelled   ErrorKind = "cancelled"
	ErrCrashed     ErrorKind = "crashed"
	ErrUnavailable ErrorKind = "unavailable" // the provider is not there
	ErrInternal    ErrorKind = "internal"
	ErrTool        ErrorKind = "tool" // the tool ran and said that it failed
)

// MaxBrief bounds a brief, in characters (Y-120).
const MaxBrief = 80

// Block is one piece of a result for display (Y-122): exactly one of the three
// contents, as Kind says. Its content is untrusted.
type Block struct {
	Kind     BlockKind       `json:"kind"`
	Text     string          `json:"text,omitempty"`
	Markdown string          `json:"markdown,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"`
}

// BlockKind names the content of a [Block].
type BlockKind string

// The display blocks.
const (
	BlockText     BlockKind = "text"
	BlockMarkdown BlockKind = "markdown"
	BlockJSON     BlockKind = "json"
)

// Text makes a text block.
func Text(s string) Block { return Block{Kind: BlockText, Text: s} }

// Markdown makes a markdown block.
func Markdown(s string) Block { return Block{Kind: BlockMarkdown, Markdown: s} }

// JSON makes a JSON block from raw bytes.
func JSON(raw json.RawMessage) Block { return Block{Kind: BlockJSON, Data: raw} }

// Content returns the block's text, whatever its kind.
func (b Block) Content() string {
	switch b.Kind {
	case BlockMarkdown:
		return b.Markdown
	case BlockJSON:
		return string(b.Data)
	case BlockText:
	}
	return b.Text
}

// HTML renders the block so that nothing in it acts as markup (Y-121, R24).
func (b Block) HTML() string {
	return `<pre class="block-` + string(b.safeKind()) + `">` + html.EscapeString(b.Content()) + `</pre>`
}

func (b Block) safeKind() BlockKind {
	switch b.Kind {
	case BlockMarkdown, BlockJSON:
		return b.Kind
	case BlockText:
	}
	return BlockText
}

// Artifact is a stored part of a result.
type Artifact struct {
	ID       string `json:"id"`
	MimeType string `json:"mime_type"`
	Size     int64  `json:"size"` // bytes stored
	Full     int64  `json:"full"` // bytes that there were
}

// Result is what a call came to (S-44, Y-120).
type Result struct {
	OK         bool
	ErrorKind  ErrorKind // set when not OK
	Brief      string    // at most MaxBrief characters, one line
	Display    []Block
	Structured json.RawMessage
	Artifacts  []Artifact
	// Detail is machine-readable detail of a failure, such as {"errors":[…]}.
	Detail json.RawMessage
	// Approved says that a person agreed to this very call.
	Approved bool
	// Native is the provider's own answer; set for native calls only.
	Native *NativeResult
}

// NativeResult is an answer in the provider's own words: exactly one of a
// result and an error object.
type NativeResult struct {
	Result jsonrpc.Object
	Error  json.RawMessage
	// Buffer holds the bytes of both, if it is set. Whoever has taken what it
	// needs releases it.
	Buffer *bufpool.Buffer
}

// Envelope is the JSON form of a result (Y-129).
type Envelope struct {
	OK         bool            `json:"ok"`
	Kind       ErrorKind       `json:"kind,omitempty"`
	Brief      string          `json:"brief"`
	Display    []Block         `json:"display"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Artifacts  []Artifact      `json:"artifacts,omitempty"`
	Detail     json.RawMessage `json:"detail,omitempty"`
}

// Envelope returns the JSON form.
func (r Result) Envelope() Envelope {
	display := r.Display
	if display == nil {
		display = []Block{}
	}
	return Envelope{r.OK, r.ErrorKind, r.Brief, display, r.Structured, r.Artifacts, r.Detail}
}

// Text joins the display blocks as a model reads them.
func (r Result) Text() string {
	parts := make([]string, 0, len(r.Display))
	for _, b := range r.Display {
		parts = append(parts, b.Content())
	}
	return strings.Join(parts, "\n")
}

// OK makes a successful result.
func OK(brief string, display ...Block) Result {
	return Result{OK: true, Brief: Brief(brief), Display: display}
}

// Fail makes a failed result; the message is brief and display.
func Fail(kind ErrorKind, format string, args ...any) Result {
	msg := fmt.Sprintf(format, args...)
	return Result{ErrorKind: kind, Brief: Brief(msg), Display: []Block{Text(msg)}}
}

// Brief cuts s to one line of at most MaxBrief characters.
func Brief(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= MaxBrief {
		return s
	}
	r := []rune(s)
	return string(r[:MaxBrief-1]) + "…"
}
