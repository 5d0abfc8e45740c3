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
	"unicode/utf8"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// maxShown is how much of a call's arguments a question shows. What cannot be
// shown whole is not asked about (R18).
const maxShown = 16 << 10

// armingDelay is how soon an answer can come: what was typed before, or while,
// the question appeared is no answer to it (C.2).
const armingDelay = 500 * time.Millisecond

// siblings is how long a question waits for identical ones to come together.
const siblings = 100 * time.Millisecond

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
	params, whole := shownArguments(r.Params)
	if !whole {
		s.answer(ctx, r.ID, event.Reject, "the arguments are too long to be shown on a terminal")
		return
	}
	times := ""
	if len(same) > 1 {
		times = fmt.Sprintf(", %d times", len(same))
	}
	var q folder.Question
	if r.ToolName == folder.TrustTool && json.Unmarshal(r.Params, &q) == nil {
		fmt.Fprintf(s.err, "\n%s", explain(q))
	} else {
		fmt.Fprintf(s.err, "\n%s\n%s", asks(r, times), params)
	}
	fmt.Fprint(s.err, "[y]es, yes for this [s]ession, [n]o — or say why not: ")
	line, ok := s.readLine(ctx, r.ID)
	if !ok {
		fmt.Fprintln(s.err)
		return
	}
	answer, feedback := event.Reject, ""
	switch typed := strings.TrimSpace(line); strings.ToLower(typed) {
	case "y", "yes":
		answer = event.Approve
	case "s", "session":
		answer = event.ApproveForSession
	case "n", "no", "":
	default:
		feedback = typed
	}
	for _, id := range s.identical(ctx, r) { // one answer for all that look the same (Y-143)
		s.answer(ctx, id, answer, feedback)
	}
}

// asks says what a question is about: usually whether a tool may run.
func asks(r event.ApprovalRequest, times string) string {
	var q struct {
		Host    string `json:"host"`
		Port    int    `json:"port"`
		Outside bool   `json:"outside"`
	}
	_ = json.Unmarshal(r.Params, &q) // what cannot be read is shown as it came
	switch {
	case r.ToolName == tool.HostQuestion && q.Host != "":
		return fmt.Sprintf("May the command reach %s%s?", printable(net.JoinHostPort(q.Host, strconv.Itoa(q.Port)), 300), times)
	case r.ToolName == "shell" && q.Outside:
		return fmt.Sprintf("May shell run outside of the sandbox%s?", times)
	}
	return fmt.Sprintf("May %s run%s?", printable(r.ToolName, 80), times)
}

// identical returns the ids of the asks that wait for the same decision as r, r
// itself included while it waits.
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

// pending are the calls that wait for an answer; none if yaya does not say.
func (s *show) pending(ctx context.Context) (all []admin.Ask) {
	if s.b.api(ctx, http.MethodGet, "/api/approvals", nil, &all) != nil {
		return nil
	}
	return all
}

func (s *show) answer(ctx context.Context, id string, a event.ApprovalAnswer, feedback string) {
	err := s.b.api(ctx, http.MethodPost, "/api/approvals/"+url.PathEscape(id), map[string]string{"response": string(a), "feedback": feedback}, nil)
	switch {
	case answeredWith(err, http.StatusConflict):
		fmt.Fprintf(s.err, "  somebody was quicker: %v\n", err)
	case err != nil && ctx.Err() == nil:
		fmt.Fprintf(s.err, "  %v\n", err)
	}
}

// readLine waits for a line while the question stands.
func (s *show) readLine(ctx context.Context, id string) (string, bool) {
	if s.lines == nil {
		// Reading cannot be interrupted; the reader ends with the program.
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
			if !ok { // nobody is there any more
				s.answer(ctx, id, event.Reject, "the terminal was closed")
				return "", false
			}
			if time.Since(shown) < armingDelay {
				fmt.Fprint(s.err, "That came before the question could be read. Again: ")
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

// escaped writes everything but printable ASCII as \u escapes, and stops when it has
// written more than limit bytes.
func escaped(s string, limit int) string {
	var b strings.Builder
	for i, r := range s {
		_, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r >= 0x20 && r < 0x7f:
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		if b.Len() > limit {
			break
		}
	}
	return b.String()
}

// multiline makes text that came from elsewhere safe for a terminal and keeps
// its lines.
func multiline(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = feature.Clean(l, 1<<20)
	}
	return strings.Join(lines, "\n")
}
