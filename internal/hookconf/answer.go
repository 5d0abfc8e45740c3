package hookconf

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/members"
)

// Decision is the verdict of a hook.
type Decision string

// The decisions.
const (
	Allow Decision = "allow" // no objection
	Ask   Decision = "ask"
	Deny  Decision = "deny"
)

// Bounds of an answer, in bytes.
const (
	maxReason  = 1 << 10
	maxContext = 16 << 10
)

// Answer is the answer of a hook.
type Answer struct {
	Decision Decision `json:"decision,omitempty"` // "" has no opinion
	Reason   string   `json:"reason,omitempty"`
	// Context is text for the model.
	Context string `json:"context,omitempty"`
	// Result replaces the text of a tool's result; nil leaves it.
	Result *string `json:"result,omitempty"`
}

// Answer reads what a hook has left. An error means that nobody knows what the hook wanted to
// say.
func (h Hook) Answer(stdout, stderr string, code int) (a Answer, err error) {
	switch code {
	case 0:
	case 2:
		return Answer{Decision: Deny, Reason: cut.Text(cmp.Or(strings.TrimSpace(stderr), "exit code 2"), maxReason)}, nil
	default:
		return a, fmt.Errorf("it ended with exit code %d: %s", code, cut.Text(strings.TrimSpace(stderr), 300))
	}
	text := strings.TrimSpace(stdout)
	switch {
	case text == "":
		return a, nil
	case h.Claude:
		a, err = claude(h.Event, text)
	default:
		err = strict(text, &a)
	}
	if err != nil {
		return Answer{}, err
	}
	switch a.Decision {
	case "", Allow, Ask, Deny:
	default:
		return Answer{}, fmt.Errorf("it answered with the unknown decision %q", cut.Text(string(a.Decision), 60))
	}
	a.Reason, a.Context = cut.Text(a.Reason, maxReason), cut.Text(a.Context, maxContext)
	return a, nil
}

func strict(text string, into any) error {
	err := json.Unmarshal([]byte(text), new(json.RawMessage)) // the whole text is one value
	if err == nil && text[0] != '{' {
		err = errors.New("not an object")
	}
	if err == nil {
		err = members.Decode([]byte(text), into)
	}
	if err != nil {
		return fmt.Errorf("its output is not the JSON of an answer: %w", err)
	}
	return nil
}

// claude reads an answer in the protocol of Claude Code. Text that is not JSON is allowed
// there: context for the model at the start of a session and of a turn, otherwise nothing.
func claude(e Event, text string) (a Answer, err error) {
	if text[0] != '{' {
		if e == SessionStart || e == Prompt {
			a.Context = text
		}
		return a, nil
	}
	var c struct {
		Continue   *bool    `json:"continue"`
		StopReason string   `json:"stopReason"`
		Decision   Decision `json:"decision"`
		Reason     string   `json:"reason"`
		Specific   struct {
			Decision Decision        `json:"permissionDecision"`
			Reason   string          `json:"permissionDecisionReason"`
			Context  string          `json:"additionalContext"`
			Input    json.RawMessage `json:"updatedInput"`
			Request  *struct {
				Behavior Decision        `json:"behavior"`
				Message  string          `json:"message"`
				Input    json.RawMessage `json:"updatedInput"`
			} `json:"decision"`
		} `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return a, fmt.Errorf("its output is not the JSON of an answer: %w", err)
	}
	a = Answer{Decision: c.Specific.Decision, Reason: c.Specific.Reason, Context: c.Specific.Context}
	if r := c.Specific.Request; r != nil {
		a.Decision, a.Reason = r.Behavior, r.Message
		if len(r.Input) > 0 {
			c.Specific.Input = r.Input
		}
	}
	switch c.Decision {
	case "block", Deny:
		a.Decision, a.Reason = Deny, cmp.Or(c.Reason, a.Reason)
	case "approve", Allow, "":
	case Ask:
		a.Decision, a.Reason = Ask, cmp.Or(c.Reason, a.Reason)
	default:
		return a, fmt.Errorf("it answered with the unknown decision %q", cut.Text(string(c.Decision), 60))
	}
	if a.Decision == "defer" {
		a.Decision = Ask
	}
	switch {
	case c.Continue != nil && !*c.Continue:
		a.Decision, a.Reason = Deny, cmp.Or(c.StopReason, a.Reason)
	case len(c.Specific.Input) > 0 && string(c.Specific.Input) != "null" && a.Decision != Deny:
		// The call must not run as it is, and what a person has seen is what runs.
		return a, errors.New("it wants to change the arguments of the call, which yaya does not do")
	}
	return a, nil
}
