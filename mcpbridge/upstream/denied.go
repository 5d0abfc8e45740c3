package upstream

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Bounds of the reports about a sandbox's denials.
const (
	deniedAgain = time.Minute // until the same denial is reported again
	maxDenied   = 20          // different ones reported in that time
	lastDenied  = 8           // kept in the server's state
	maxHints    = 4           // listed in a failure
	maxLooks    = 16          // lines about files that are examined, of a failure
	maxHeard    = 16          // and of standard error, per second
)

// Bounds of the part of a failure that is examined, in bytes: its end, and each line.
const (
	maxComplaint = 64 << 10
	maxLine      = 4 << 10
)

// Denial describes, for people, an action that a sandbox denied a server.
type Denial struct {
	What  string `json:"what"`
	Allow string `json:"allow,omitempty"` // the command that allows it
	// Says means that only the server claims the denial: it names what it wants.
	Says bool `json:"-"`
	// Looked means that a line complains about a file, which was looked up: it counts even
	// without a result.
	Looked bool `json:"-"`
}

func (d Denial) String() string {
	switch {
	case d.Allow == "":
		return d.What
	case d.Says:
		return d.What + ". If you want it to, allow it: " + d.Allow
	}
	return d.What + ". Allow it: " + d.Allow
}

// kept is a denial, with the number of denials at its last occurrence.
type kept struct {
	Denial
	at uint64
}

// denials are the refusals of a server's sandboxes.
type denials struct {
	count atomic.Uint64 // total number

	mu   sync.Mutex
	kept []kept          // the last distinct ones
	told map[string]bool // since begun
	from time.Time

	heard  int // lines about files, since second
	second time.Time
}

// mayLook reports whether one more line of standard error may be examined.
func (d *denials) mayLook() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); now.Sub(d.second) >= time.Second {
		d.heard, d.second = 0, now
	}
	return d.heard < maxHeard
}

func (d *denials) looked() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heard++
}

// note stores a denial, and tells whether to report it.
func (d *denials) note(text string, of Denial) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept = slices.DeleteFunc(d.kept, func(k kept) bool { return k.Denial == of })
	d.kept = append(d.kept[max(0, len(d.kept)-lastDenied+1):], kept{of, d.count.Add(1)})
	if now := time.Now(); d.told == nil || now.Sub(d.from) >= deniedAgain {
		d.told, d.from = map[string]bool{}, now
	}
	if d.told[text] || len(d.told) >= maxDenied {
		return false
	}
	d.told[text] = true
	return true
}

// recent returns the last denials, newest first.
func (d *denials) recent() []Denial {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []Denial
	for _, k := range slices.Backward(d.kept) {
		out = append(out, k.Denial)
	}
	return out
}

// since describes the denials after the first n: the last few, each once. It returns "" if
// there are none.
func (d *denials) since(n uint64) string {
	if d.count.Load() == n {
		return ""
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []string
	for _, k := range d.kept {
		if k.at > n {
			all = append(all, k.String())
		}
	}
	return strings.Join(all[max(0, len(all)-maxHints):], "; ")
}

// tells returns the text about the denials after the first n for a failed call. A server in its
// sandbox gets no such text, about itself or others, because the offered permits would reveal
// which files exist. Its user finds them in the log and in the server's state.
func (p *Provider) tells(caller tool.Caller, n uint64) string {
	if caller.IsServer() {
		return ""
	}
	return p.denials.since(n)
}

// Hint implements [feature.Hinter]: it describes the sandbox's refusals since the start before
// the last one, since the last one may have only begun.
func (p *Provider) Hint() string { return p.denials.since(p.before.Load()) }

// denied handles a refusal of the server's sandbox.
func (p *Provider) denied(d Denial) {
	d.What, d.Allow = feature.Clean(d.What, 1<<10), feature.Clean(d.Allow, 1<<10)
	text := d.String()
	if !p.denials.note(text, d) {
		return
	}
	if p.cfg.Log != nil {
		p.cfg.Log("yaya", "", text)
	}
	if p.cfg.Denied != nil {
		p.cfg.Denied(text)
	}
}

// heard handles a line of the server's standard error.
func (p *Provider) heard(line string) {
	if p.cfg.Log != nil {
		p.cfg.Log("stderr", "", line)
	}
	if p.cfg.Kept == nil || !p.denials.mayLook() {
		return
	}
	d := p.cfg.Kept(line[:min(len(line), maxLine)])
	if d.Looked {
		p.denials.looked()
	}
	if d.What != "" {
		p.denied(d)
	}
}

// complaints searches a failure for refusals of the sandbox: not every server reports them on
// standard error. It examines only lines about files, and only the end of a long failure.
func (p *Provider) complaints(r reply) {
	text := ""
	switch {
	case r.err != nil:
		text = end(jsonrpc.ParseError(r.err).Message)
	case string(r.result.Get("isError")) == "true":
		text = textIn(r.result.Get("content"))
	}
	hints, looks := 0, 0
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		d := p.cfg.Kept(line[:min(len(line), maxLine)])
		if d.Looked {
			looks++
		}
		if d.What != "" {
			p.denied(d)
			hints++
		}
		if hints == maxHints || looks == maxLooks {
			return
		}
	}
}

func end(s string) string { return s[max(0, len(s)-maxComplaint):] }

// textIn returns the text of the content of a result. It reads a result that is too long to
// parse as raw text.
func textIn(content []byte) string {
	if len(content) > maxComplaint {
		return unescape.Replace(string(content[len(content)-maxComplaint:]))
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(part.Text + "\n")
	}
	return b.String()
}

var unescape = strings.NewReplacer(`\\n`, "\n", `\n`, "\n", `\"`, `"`, `\/`, "/", `\u0027`, "'")

// because adds the sandbox's refusals during the call to a failure, as its possible cause. It
// returns a success unchanged.
func (r reply) because(denial string) reply {
	if r.err != nil {
		e := jsonrpc.ParseError(r.err)
		e.Message, e.Raw = e.Message+"; "+denial, nil
		r.err = e.Append(nil)
		return r
	}
	if string(r.result.Get("isError")) != "true" {
		return r
	}
	content := bytes.TrimSpace(r.result.Get("content"))
	if len(content) < 2 || content[0] != '[' {
		return r
	}
	longer := bytes.TrimSpace(content[:len(content)-1])
	if len(longer) > 1 {
		longer = append(bytes.Clone(longer), ',')
	} else {
		longer = bytes.Clone(longer)
	}
	longer = append(jsonrpc.AppendString(append(longer, `{"type":"text","text":`...), denial), "}]"...)
	if o, err := jsonrpc.ParseObject(r.result.Append(nil, jsonrpc.Edit{Name: "content", Value: longer})); err == nil {
		r.result = o
	}
	return r
}

// failedBecause is like because, for a call without an answer from the server.
func failedBecause(res tool.Result, denial string) tool.Result {
	if res.OK || len(res.Display) == 0 {
		return res
	}
	return tool.Fail(res.ErrorKind, "%s; %s", res.Display[0].Content(), denial)
}
