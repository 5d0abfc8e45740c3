package sessions

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/session"
)

type (
	newMessage struct {
		ID           string `json:"id,omitempty" maxLength:"128" pattern:"^[A-Za-z0-9_-]+$" doc:"the client's id: the same one with the same body is the same message"`
		Role         string `json:"role" enum:"system,user,assistant,tool"`
		Parts        []Part `json:"parts" minItems:"1" maxItems:"64"`
		AutoRun      *bool  `json:"auto_run,omitempty" doc:"whether it starts a turn; the session's auto_run by default. Only a user's message does."`
		Delivery     string `json:"delivery,omitempty" enum:"reject,queue,steer,interrupt" doc:"what happens while a turn runs; reject by default"`
		OnBusy       string `json:"on_busy,omitempty" enum:"reject,queue,steer,interrupt" doc:"the same as delivery"`
		ExpectedTurn string `json:"expected_turn_id,omitempty" maxLength:"128" doc:"steers this turn and no other"`
		MaxSteps     int    `json:"max_steps,omitempty" minimum:"0" maximum:"1000" doc:"calls of the model at most"`
	}
	posted struct {
		MessageID string `json:"message_id"`
		TurnID    string `json:"turn_id" doc:"the turn that takes it; empty while it is queued, and for messages that start none"`
		Queued    bool   `json:"queued,omitempty"`
	}
	outPosted struct {
		Replayed string `header:"Idempotency-Replayed" doc:"true for a message that was posted before"`
		Body     posted
	}
	InTurn struct {
		InSession
		TurnID string `path:"turn_id" doc:"turn_…"`
	}
	outTurn struct {
		Body struct {
			TurnID string `json:"turn_id"`
		}
	}
	outQueue struct {
		Body struct {
			Queue []queued `json:"queue"`
		}
	}
	InPage struct {
		InSession
		Before int64 `query:"before" minimum:"0" doc:"seq; what came before it. 0 is from the end"`
		Limit  int   `query:"limit" minimum:"1" maximum:"200" default:"20"`
	}
)

func (s *Service) messageRoutes() {
	api.Handle(s.API, op("POST", "/v1/sessions/{session_id}/messages", "postMessage", auth.SessionsWrite, "Send a message, which may start a turn", http.StatusAccepted), func(ctx context.Context, in *struct {
		InSession
		Key  string `header:"Idempotency-Key" maxLength:"256" doc:"stands for the message's id"`
		Body newMessage
	},
	) (*outPosted, error) {
		if in.Body.ID == "" && in.Key != "" {
			in.Body.ID = "msg_" + digestKey(ctx, in.Key)
		}
		return s.post(ctx, in.SessionID, in.Body)
	})
	api.Handle(s.API, op("GET", "/v1/sessions/{session_id}/messages", "listMessages", auth.SessionsRead, "List messages, the last first", http.StatusOK), func(_ context.Context, in *InPage) (*outMessages, error) {
		return s.messages(in)
	})
	api.Handle(s.API, op("GET", "/v1/sessions/{session_id}/turns", "listTurns", auth.SessionsRead, "List turns, the last first", http.StatusOK), func(_ context.Context, in *InPage) (*outTurns, error) {
		return s.turns(in)
	})
	api.Handle(s.API, op("POST", "/v1/sessions/{session_id}/cancel", "cancelTurn", auth.SessionsWrite, "Cancel the running turn, or a summary on demand, at once", http.StatusAccepted), func(_ context.Context, in *InSession) (*outTurn, error) {
		if _, _, err := s.find(in.SessionID); err != nil {
			return nil, err
		}
		_, turn := s.cfg.Loop.State(in.SessionID)
		if !s.cfg.Loop.Cancel(in.SessionID) {
			return nil, api.Coded(http.StatusConflict, "no_active_turn", "no turn is running")
		}
		out := new(outTurn)
		out.Body.TurnID = turn // "" for a summary that somebody has asked for
		return out, nil
	})
	s.describeUndo()
	s.describeCompact()
	api.Handle(s.API, op("POST", "/v1/sessions/{session_id}/turns/{turn_id}/retry", "retryTurn", auth.SessionsWrite, "Retry a turn that failed, was cancelled or interrupted, or was not started", http.StatusAccepted), func(ctx context.Context, in *InTurn) (*outTurn, error) {
		return s.retry(ctx, in.SessionID, in.TurnID)
	})
	api.Handle(s.API, op("GET", "/v1/sessions/{session_id}/queue", "getQueue", auth.SessionsRead, "List messages that wait for the running turn to end", http.StatusOK), func(_ context.Context, in *InSession) (*outQueue, error) {
		k, _, err := s.find(in.SessionID)
		if err != nil {
			return nil, err
		}
		sn, err := k.Snapshot()
		out := new(outQueue)
		out.Body.Queue = queue(sn.Queue)
		return out, err
	})
	api.Handle(s.API, op("PUT", "/v1/sessions/{session_id}/queue", "setQueue", auth.SessionsWrite, "Reorder the queue, or remove messages from it", http.StatusOK), func(ctx context.Context, in *struct {
		InSession
		Body struct {
			MessageIDs []string `json:"message_ids" maxItems:"64" doc:"of those that stay, in the new order"`
		}
	},
	) (*outQueue, error) {
		return s.setQueue(ctx, in.SessionID, in.Body.MessageIDs)
	})
}

// completed is the error of who wants something of the agent of a closed session.
func completed() error {
	return api.Coded(http.StatusConflict, "session_completed", "the session is closed: fork it to go on")
}

// open returns an error for a session that is closed, or gone.
func (s *Service) open(id string) error {
	_, rec, err := s.find(id)
	if err == nil && rec.Status == Completed {
		err = completed()
	}
	return err
}

// prepared reads a message: its text, and what is attached.
func (s *Service) prepared(id string, parts []Part) (text string, attached []event.Attachment, err error) {
	var texts []string
	for i, p := range parts {
		bad := func(why string) error {
			return api.Coded(http.StatusBadRequest, "bad_part", "parts[%d]: %s", i, why)
		}
		switch {
		case p.Type == "text" && (p.Ref != "" || p.MimeType != ""):
			return "", nil, bad("a text has no ref and no mime_type")
		case p.Type == "text":
			texts = append(texts, p.Text)
		case p.Text != "":
			return "", nil, bad("only a text has text")
		default:
			mime, err := s.kindOf(id, p.Ref)
			if err != nil {
				return "", nil, bad("attachment not found in this session")
			}
			if want := p.Type; want != "file" && want != partType(mime) {
				return "", nil, bad("the attachment is " + mime)
			}
			attached = append(attached, event.Attachment{Ref: p.Ref, MimeType: mime, Name: printable(p.Name)})
		}
	}
	text = strings.Join(texts, "\n")
	if len(text) > maxPrompt {
		return "", nil, api.Fail(http.StatusRequestEntityTooLarge, "a message has at most %d bytes of text: attach what is longer", maxPrompt)
	}
	if strings.TrimSpace(text) == "" && len(attached) == 0 {
		return "", nil, api.Coded(http.StatusBadRequest, "bad_part", "the message is empty")
	}
	return text, attached, nil
}

// post takes a message in.
func (s *Service) post(ctx context.Context, id string, m newMessage) (*outPosted, error) {
	k, rec, err := s.steer(ctx, id)
	if err != nil {
		return nil, err
	}
	text, attached, err := s.prepared(id, m.Parts)
	if err != nil {
		return nil, err
	}
	if rec.Status == Completed {
		if again, err := postedBefore(ctx, k, m, text, attached); again != nil || err != nil {
			return again, err
		}
		return nil, completed()
	}
	f, err := s.feed(id) // whoever speaks is there to be asked
	if err != nil {
		return nil, err
	}
	defer f.Leave()
	if m.Role != "user" {
		return s.say(ctx, k, m, text, attached)
	}
	s.drive(rec)
	run := rec.AutoRun
	set(&run, m.AutoRun)
	delivery := m.Delivery
	if delivery == "" {
		delivery = m.OnBusy
	}
	if m.ExpectedTurn != "" && delivery != string(loop.DeliverSteer) {
		return nil, api.Fail(http.StatusBadRequest, "expected_turn_id is for delivery steer")
	}
	a, err := s.cfg.Loop.Submit(ctx, loop.Prompt{
		SessionID: id, ID: m.ID, Text: text, Attachments: attached, Delivery: loop.Delivery(delivery), ExpectedTurn: m.ExpectedTurn, MaxSteps: m.MaxSteps, Hold: !run,
		May: func() error { return s.open(id) }, // it may have been archived or closed meanwhile
	})
	if err != nil {
		return nil, err
	}
	out := &outPosted{Body: posted{a.ID, a.TurnID, a.Queued}}
	if a.Duplicate {
		out.Replayed = "true"
	}
	return out, nil
}

// postedBefore returns the answer to a message that was posted before, nil if it was not.
func postedBefore(ctx context.Context, k *session.Session, m newMessage, text string, attached []event.Attachment) (*outPosted, error) {
	was, known, err := k.Admitted(m.ID)
	if err != nil || !known {
		return nil, err
	}
	p := session.Prompt{Text: text, Attachments: attached}
	if m.Role != "user" {
		p.Role = m.Role
	}
	if was.Hash != p.Hash() {
		return nil, loop.ErrConflict
	}
	sn, err := k.Snapshot() // the client may have given up before the disk had it
	if err == nil {
		err = k.Sync(ctx, sn.AsOfSeq)
	}
	return &outPosted{Replayed: "true", Body: posted{m.ID, was.Turn, was.Entry == 0}}, err
}

// drive has the session's strategy drive its turns. Sessions that were made elsewhere
// keep what they have.
func (s *Service) drive(rec Session) {
	strategy := rec.Strategy
	if strategy == "" && strings.HasPrefix(rec.ID, "sess_") && s.cfg.HasStrategy(s.cfg.Strategy) {
		strategy = s.cfg.Strategy
	}
	if strategy != "" {
		s.cfg.Loop.SetStrategy(rec.ID, strategy)
	}
}

// say writes down what somebody else has said, which starts nothing.
func (s *Service) say(ctx context.Context, k *session.Session, m newMessage, text string, attached []event.Attachment) (*outPosted, error) {
	if m.AutoRun != nil && *m.AutoRun {
		return nil, api.Fail(http.StatusBadRequest, "only a user's message starts a turn")
	}
	s.create.Lock() // an id is taken once
	defer s.create.Unlock()
	msg := session.Message{Role: m.Role, Content: text, Attachments: attached}
	if m.ID == "" {
		m.ID = "msg_" + newID("", now())
	}
	if again, err := postedBefore(ctx, k, m, text, attached); again != nil || err != nil {
		return again, err
	}
	sn, err := k.Snapshot()
	if err != nil {
		return nil, err
	}
	if sn.TurnID != "" { // it would come between a call and its result
		return nil, session.ErrBusy
	}
	entry, err := k.Say(msg, m.ID, "")
	if err != nil {
		return nil, err
	}
	return &outPosted{Body: posted{m.ID, "", false}}, k.Sync(ctx, entry)
}

func (s *Service) retry(ctx context.Context, id, turn string) (*outTurn, error) {
	k, rec, err := s.steer(ctx, id)
	if err != nil {
		return nil, err
	}
	f, err := s.feed(id)
	if err != nil {
		return nil, err
	}
	defer f.Leave()
	s.drive(rec)
	a, err := s.cfg.Loop.Retry(id, turn)
	if errors.Is(err, loop.ErrNotRetryable) && !hasTurn(k, turn) {
		return nil, api.Fail(http.StatusNotFound, "turn not found")
	}
	if err != nil {
		return nil, err
	}
	out := new(outTurn)
	out.Body.TurnID = a.TurnID
	return out, nil
}

// hasTurn reports whether a turn stands on the tape; a tape that cannot be read has none.
func hasTurn(k *session.Session, turn string) bool {
	found := false
	err := k.Entries(0, func(e session.Entry) error {
		if e.Meta.Turn != turn {
			return nil
		}
		found = true
		return fs.SkipAll
	})
	return found && err == nil
}

func (s *Service) setQueue(ctx context.Context, id string, ids []string) (*outQueue, error) {
	k, _, err := s.steer(ctx, id)
	if err != nil {
		return nil, err
	}
	sn, err := k.Snapshot()
	if err != nil {
		return nil, err
	}
	for _, want := range ids {
		if !slices.ContainsFunc(sn.Queue, func(p session.Prompt) bool { return p.ID == want }) {
			return nil, api.Coded(http.StatusConflict, "not_queued", "message %q is not in the queue, or no longer", want)
		}
	}
	if len(slices.Compact(slices.Sorted(slices.Values(ids)))) != len(ids) {
		return nil, api.Fail(http.StatusBadRequest, "a message is named twice")
	}
	left, err := s.cfg.Loop.Queue(ctx, id, ids)
	out := new(outQueue)
	out.Body.Queue = queue(left)
	return out, err
}

var nameJunk = lazyregexp.New(`[\p{C}\p{Zl}\p{Zp}/\\]+`)

// printable turns a file's name into one visible line without a path.
func printable(name string) string {
	name = nameJunk().ReplaceAllString(name, "_")
	if r := []rune(name); len(r) > 120 {
		name = string(r[:120])
	}
	return name
}
