package upstream

import (
	"bytes"
	"slices"
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
)

// Denial is something that a server was kept from, in words for people.
type Denial struct {
	What  string `json:"what"`
	Allow string `json:"allow,omitempty"` // the command that allows it
}

func (d Denial) String() string {
	if d.Allow == "" {
		return d.What
	}
	return d.What + ". Allow it: " + d.Allow
}

// denials are what the sandboxes of a server have refused.
type denials struct {
	count atomic.Uint64 // all of them

	mu   sync.Mutex
	last string
	kept []Denial        // the last different ones
	told map[string]bool // since begun
	from time.Time
}

// note keeps a denial, and reports whether it is to be told.
func (d *denials) note(text string, of Denial) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = text
	d.kept = slices.DeleteFunc(d.kept, func(k Denial) bool { return k == of })
	d.kept = append(d.kept[max(0, len(d.kept)-lastDenied+1):], of)
	d.count.Add(1)
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
	out := slices.Clone(d.kept)
	slices.Reverse(out)
	return out
}

// since returns the last denial after the first n, "" without one.
func (d *denials) since(n uint64) string {
	if d.count.Load() == n {
		return ""
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}

// denied is told what the server's sandbox has refused.
func (p *Provider) denied(d Denial) {
	d = Denial{feature.Clean(d.What, 1<<10), feature.Clean(d.Allow, 1<<10)}
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
	if p.cfg.Kept != nil {
		if d := p.cfg.Kept(line); d.What != "" {
			p.denied(d)
		}
	}
}

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
