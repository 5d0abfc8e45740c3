package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/callargs"
	"github.com/yaya-ai/yaya/internal/screen"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// maxShown bounds the arguments that a question shows. If a call's arguments do not fit, the
// user is not asked about it.
const maxShown = 16 << 10

// armingDelay is how long a new question ignores input: a key pressed before or while it
// appeared is not an answer to it.
const armingDelay = 500 * time.Millisecond

// siblings is how long a question waits for identical ones, to ask about all of them at once.
const siblings = 100 * time.Millisecond

// answerKeys lists the answers to a question.
const answerKeys = "[y]es, yes for this [s]ession, [n]o — or say why not: "

// planTool is the tool that hands in a plan, and planKeys are the answers to its question: each plan is
// another one.
const (
	planTool = "propose_plan"
	planKeys = "[y]es, [n]o — or say why not: "
)

// question asks on the terminal whether a call may run.
func (s *show) question(ctx context.Context, r event.ApprovalRequest) {
	select {
	case <-time.After(siblings):
	case <-ctx.Done():
		return
	}
	same := s.identical(ctx, r)
	if len(same) == 0 {
		return // answered or withdrawn before it could be shown
	}
	params, whole := shownArguments(s.colours, r.ToolName, r.Params)
	if !whole {
		s.answer(ctx, r.ID, event.Reject, "the arguments are too long to be shown on a terminal")
		return
	}
	times := ""
	if len(same) > 1 {
		times = fmt.Sprintf(", %d times", len(same))
	}
	keys := answerKeys
	var q folder.Question
	if r.ToolName == planTool {
		keys = planKeys
		fmt.Fprintf(s.err, "\nMay the agent %s%s?\n%s", daemon.Printable(r.Brief, 200), times, s.planText(r.Params, params))
	} else if r.ToolName == folder.TrustTool && json.Unmarshal(r.Params, &q) == nil {
		fmt.Fprintf(s.err, "\n%s", daemon.Explain(q))
	} else {
		fmt.Fprintf(s.err, "\n%s\n%s", asks(r, times), params)
	}
	fmt.Fprint(s.err, keys)
	line, ok := s.readLine(ctx, r.ID)
	if !ok && ctx.Err() != nil {
		endPrompt(s.err, keys)
		return
	}
	if !ok {
		fmt.Fprintln(s.err)
		return
	}
	answer, feedback := event.Reject, ""
	switch typed := strings.TrimSpace(line); strings.ToLower(typed) {
	case "y", "yes":
		answer = event.Approve
	case "s", "session":
		if answer = event.ApproveForSession; r.ToolName == planTool {
			answer = event.Approve
		}
	case "n", "no", "":
	default:
		feedback = typed
	}
	for _, id := range s.identical(ctx, r) { // one answer covers all identical questions
		s.answer(ctx, id, answer, feedback)
	}
}

// planText renders a plan that is the only argument of its call. Otherwise it returns all arguments.
func (s *show) planText(params json.RawMessage, all string) string {
	args := callargs.Read(params)
	if s.live == nil || len(args) != 1 || args[0].Name != "plan" {
		return all
	}
	plan, ok := args[0].Text()
	if !ok {
		return all
	}
	return strings.Join(screen.Exactly(s.colours, plan, planWidth), "\n") + "\n"
}

// planWidth is the width of a rendered plan, in columns.
const planWidth = 80

// asks returns the text of a question, usually whether a tool may run.
func asks(r event.ApprovalRequest, times string) string {
	var q struct {
		Host    string `json:"host"`
		Port    int    `json:"port"`
		URL     string `json:"url"`
		Outside bool   `json:"outside"`
	}
	_ = json.Unmarshal(r.Params, &q) // unreadable arguments are shown unchanged
	switch {
	case r.ToolName == tool.HostQuestion && q.Host != "":
		who := "the command reach"
		if q.URL != "" {
			who = "the agent read from"
		}
		return fmt.Sprintf("May %s %s%s?", who, daemon.Printable(net.JoinHostPort(q.Host, strconv.Itoa(q.Port)), 300), times)
	case r.ToolName == "shell" && q.Outside:
		return fmt.Sprintf("May shell run outside the sandbox%s?", times)
	}
	return fmt.Sprintf("May %s run%s?", daemon.Printable(r.ToolName, 80), times)
}

// identical returns the ids of the pending asks that need the same decision as r, including r
// itself while it is pending.
func (s *show) identical(ctx context.Context, r event.ApprovalRequest) (ids []string) {
	all := s.pending(ctx)
	i := slices.IndexFunc(all, func(p admin.Ask) bool { return p.ID == r.ID })
	if i < 0 {
		return nil
	}
	for _, p := range all {
		if p.Digest == all[i].Digest && p.SessionID == all[i].SessionID {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// pending returns the calls that wait for an answer, or none if yaya cannot be asked.
func (s *show) pending(ctx context.Context) (all []admin.Ask) {
	if s.b.API(ctx, http.MethodGet, "/api/approvals", nil, &all) != nil {
		return nil
	}
	return all
}

func (s *show) answer(ctx context.Context, id string, a event.ApprovalAnswer, feedback string) {
	err := s.b.API(ctx, http.MethodPost, "/api/approvals/"+url.PathEscape(id), map[string]string{"response": string(a), "feedback": feedback}, nil)
	switch {
	case daemon.AnsweredWith(err, http.StatusConflict):
		fmt.Fprintf(s.err, "  already decided elsewhere: %v\n", err)
	case err != nil && ctx.Err() == nil:
		fmt.Fprintf(s.err, "  %v\n", err)
	}
}

// readLine waits for a line until ctx ends.
func (s *show) readLine(ctx context.Context, id string) (string, bool) {
	if s.lines == nil {
		// A read cannot be interrupted; the goroutine ends with the program.
		s.lines = make(chan string)
		go func() {
			sc := bufio.NewScanner(s.in)
			for sc.Scan() {
				s.lines <- sc.Text()
			}
			close(s.lines)
		}()
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	shown := time.Now()
	for {
		select {
		case line, ok := <-s.lines:
			if !ok { // the user has gone
				s.answer(ctx, id, event.Reject, "the terminal was closed")
				return "", false
			}
			if time.Since(shown) < armingDelay {
				fmt.Fprint(s.err, "You typed that before the question appeared. Please answer again: ")
				continue
			}
			return line, true
		case <-ctx.Done():
			return "", false
		case <-tick.C:
			if !slices.ContainsFunc(s.pending(ctx), func(p admin.Ask) bool { return p.ID == id }) {
				return "", false
			}
		}
	}
}
