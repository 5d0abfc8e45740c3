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

// Bounds of what is told of a sandbox's denials.
const (
	deniedAgain = time.Minute // until the same is told again
	maxDenied   = 20          // different ones that are told in that time
	lastDenied  = 8           // that stand in the server's state
	maxHints    = 4           // that a failure tells
	maxLooks    = 16          // lines about files that are looked into, of a failure
	maxHeard    = 16          // and of standard error, in a second
)

// Bounds of what is looked at of a failure, in bytes: its end, and the lines in it.
const (
	maxComplaint = 64 << 10
	maxLine      = 4 << 10
)

// Denial is something that a server was kept from, in words for people.
type Denial struct {
	What  string `json:"what"`
	Allow string `json:"allow,omitempty"` // the command that allows it
	// Says is that nobody but the server says so: it names what it would like to have.
	Says bool `json:"-"`
	// Looked is that a line complains of a file, which was looked up: it counts even if
	// nothing came of it.
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

// kept is a denial, and how many there were when it came last.
type kept struct {
	Denial
	at uint64
}

// denials are what the sandboxes of a server have refused.
type denials struct {
	count atomic.Uint64 // all of them

	mu   sync.Mutex
	kept []kept          // the last different ones
	told map[string]bool // since begun
	from time.Time

	heard  int // lines about files, since second
	second time.Time
}

// mayLook reports whether one more line of standard error may be looked into.
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

// note keeps a denial, and reports whether it is to be told.
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

// recent returns the last ones, the newest first.
func (d *denials) recent() []Denial {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []Denial
	for _, k := range slices.Backward(d.kept) {
		out = append(out, k.Denial)
	}
	return out
}

// since returns the denials after the first n, each once and the last few of them, ""
// without one.
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

// tells returns what a failed call says of the denials after the first n. A server in its
// sandbox is told none, of itself or others: what can be offered tells which files are
// there. Its user finds them in the log and in the server's state.
func (p *Provider) tells(caller tool.Caller, n uint64) string {
	if caller.IsServer() {
		return ""
	}
	return p.denials.since(n)
}

// denied is told what the server's sandbox has refused.
func (p *Provider) denied(d Denial) {
	d.What, d.Allow = feature.Clean(d.What, 1<<10), feature.Clean(d.Allow, 1<<10)
	text := d.String()
	if !p.denials.note(text, d) {
		return
	}
	if p.cfg.Said != nil {
		p.cfg.Said("yaya", "", text)
	}
	if p.cfg.Denied != nil {
		p.cfg.Denied(text)
	}
}

// heard takes a line of the server's standard error.
func (p *Provider) heard(line string) {
	if p.cfg.Said != nil {
		p.cfg.Said("stderr", "", line)
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

// complaints looks for what the sandbox may be the reason of in a failure: not every
// server says on standard error what it was kept from. What else it says is not looked
// at, and of a long failure the end alone.
func (p *Provider) complaints(r reply) {
	text := ""
	switch {
	case r.err != nil:
		text = end(jsonrpc.ParseError(r.err).Message)
	case string(r.result.Get("isError")) == "true":
		text = saidIn(r.result.Get("content"))
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

// saidIn returns the text of the content of a result. What is too long to be read as a
// whole is read as it is written.
func saidIn(content []byte) string {
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

// because returns a failure with what the sandbox refused meanwhile, which may be why;
// a success as it is.
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

// failedBecause is because for a call that has no answer of the server's.
func failedBecause(res tool.Result, denial string) tool.Result {
	if res.OK || len(res.Display) == 0 {
		return res
	}
	return tool.Fail(res.ErrorKind, "%s; %s", res.Display[0].Content(), denial)
}
