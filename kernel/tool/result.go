package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"strings"

	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// ErrStopping is the cause with which requests are cancelled that outlast a stop or a restart of yaya:
// their clients are told so.
var ErrStopping = errors.New("yaya stops or restarts")

// ErrorKind classifies a result that is not OK; more kinds may come.
type ErrorKind string

// The kinds of failure. Denied, timed out and cancelled are distinct.
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

// MaxBrief bounds a brief, in characters.
const MaxBrief = 80

// Block is one piece of a result for display: exactly one of the three contents,
// selected by Kind. Its content is untrusted.
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

// HTML renders the block so that nothing in it acts as markup.
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

// Result is the result of a call.
type Result struct {
	OK         bool
	ErrorKind  ErrorKind // set when not OK
	Brief      string    // at most MaxBrief characters, one line
	Display    []Block
	Structured json.RawMessage
	Artifacts  []Artifact
	// Detail is machine-readable detail of a failure, such as {"errors":[…]}.
	Detail json.RawMessage
	// Approved reports that a person approved exactly this call.
	Approved bool
	// NotRun reports that the tool never began: the call has changed nothing.
	NotRun bool
	// Native is the provider's own answer; set for native calls only.
	Native *NativeResult
}

// NativeResult is an answer in the provider's own bytes: exactly one of a result
// and an error object.
type NativeResult struct {
	Result jsonrpc.Object
	Error  json.RawMessage
	// Buffer holds the bytes of both, if it is set. The reader releases it when it no
	// longer needs them.
	Buffer *bufpool.Buffer
}

// Envelope is the JSON form of a result.
type Envelope struct {
	OK         bool            `json:"ok"`
	Kind       ErrorKind       `json:"kind,omitempty"`
	Brief      string          `json:"brief"`
	Display    []Block         `json:"display"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Artifacts  []Artifact      `json:"artifacts,omitempty"`
	Detail     json.RawMessage `json:"detail,omitempty"`
	NotRun     bool            `json:"not_run,omitempty"`
}

// Envelope returns the JSON form.
func (r Result) Envelope() Envelope {
	display := r.Display
	if display == nil {
		display = []Block{}
	}
	return Envelope{r.OK, r.ErrorKind, r.Brief, display, r.Structured, r.Artifacts, r.Detail, r.NotRun}
}

// Text joins the display blocks into text for a model.
func (r Result) Text() string {
	parts := make([]string, 0, len(r.Display))
	for _, b := range r.Display {
		parts = append(parts, b.Content())
	}
	return strings.Join(parts, "\n")
}

// OK returns a successful result.
func OK(brief string, display ...Block) Result {
	return Result{OK: true, Brief: Brief(brief), Display: display}
}

// Fail returns a failed result; the message is both brief and display.
func Fail(kind ErrorKind, format string, args ...any) Result {
	msg := fmt.Sprintf(format, args...)
	return Result{ErrorKind: kind, Brief: Brief(msg), Display: []Block{Text(msg)}}
}

// Brief cuts s to one line of at most MaxBrief characters.
func Brief(s string) string {
	return cut.Line(s, MaxBrief)
}
