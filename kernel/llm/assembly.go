package llm

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/kernel/event"
)

// thoughts collects the reasoning of an answer.
type thoughts struct {
	list  []event.Reasoning
	bytes int
}

// add keeps a part that comes after so many calls. Secrets in it are concealed, and then the
// service would not know it again.
func (t *thoughts) add(r event.Reasoning, calls int, s *masked.Secrets) error {
	if t.bytes += len(r.Text) + len(r.Data); t.bytes > MaxReasoning || len(t.list) >= MaxToolCalls {
		return fmt.Errorf("the reasoning of the answer exceeds %d bytes or %d parts", MaxReasoning, MaxToolCalls)
	}
	if r.Calls = calls; !json.Valid(r.Data) {
		r.Data = nil
	}
	clean := s.ConcealString(r.Text)
	if clean != r.Text || !bytes.Equal(s.Concealed(r.Data, true), r.Data) {
		r.Text, r.Data = clean, nil
	}
	if len(r.Data) == 0 {
		r.By = ""
	}
	if r.Text != "" || r.Data != nil {
		t.list = append(t.list, r)
	}
	return nil
}

// assembly puts tool calls together.
type assembly []assembled

type assembled struct {
	ToolCallPart
	told *masked.Stream // the arguments as others see them
}

// said returns the filter through which the arguments of a call pass.
func (a *assembly) said(index int, s *masked.Secrets) *masked.Stream {
	if (*a)[index].told == nil {
		(*a)[index].told = s.Stream()
	}
	return (*a)[index].told
}

func (a *assembly) add(p ToolCallPart) error {
	if p.Index < 0 || p.Index >= MaxToolCalls {
		return fmt.Errorf("the answer has more than %d tool calls", MaxToolCalls)
	}
	for len(*a) <= p.Index {
		*a = append(*a, assembled{})
	}
	c := &(*a)[p.Index]
	c.ID, c.Name = cmp.Or(c.ID, p.ID), cmp.Or(c.Name, p.Name)
	if len(c.Args)+len(p.Args) > MaxArgs {
		return fmt.Errorf("the arguments of a tool call exceed %d bytes", MaxArgs)
	}
	c.Args += p.Args
	return nil
}

// list returns the calls of an answer that ended so. It makes ids unique, since results refer to
// them; arguments that are not JSON are passed on as text, which the tool's validation refuses in
// words that the model can read, and so are those of a call that was cut off before they began:
// without arguments it could do more than was meant. The secrets of s are concealed in them.
func (a *assembly) list(stop event.StopReason, s *masked.Secrets) []event.ToolCall {
	var out []event.ToolCall
	seen := map[string]bool{}
	for i, c := range *a {
		if c.ID == "" && c.Name == "" && c.Args == "" {
			continue
		}
		if c.ID == "" || seen[c.ID] {
			c.ID = "call_" + rand.Text()
		}
		seen[c.ID] = true
		args := json.RawMessage(cmp.Or(strings.TrimSpace(c.Args), "{}"))
		if cut := stop == event.StopLength && i == len(*a)-1 && strings.TrimSpace(c.Args) == ""; cut || !json.Valid(args) {
			raw, err := json.Marshal(c.Args)
			if err != nil {
				raw = []byte(`null`)
			}
			args = raw
		}
		out = append(out, event.ToolCall{ID: c.ID, Name: c.Name, Args: s.ConcealJSON(args)})
	}
	return out
}
