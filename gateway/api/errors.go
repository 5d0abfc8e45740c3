package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/session"

	"github.com/yaya-ai/yaya/internal/errnos"
)

// Failure describes a refused or failed request for its client. A [Style]
// words it. Failures may be shared: nothing here writes to one.
type Failure struct {
	Status  int
	Code    string // for programs; "" is the code of the status
	Message string // for people
	// RequestID is the id under which the log has more; it is set when the failure is sent.
	RequestID string
	// Wait says when to come back; 0 says nothing.
	Wait time.Duration
	// More is for the style of one API.
	More any
}

// Fail returns a failure with the code of its status.
func Fail(status int, format string, args ...any) *Failure {
	return &Failure{Status: status, Message: fmt.Sprintf(format, args...)}
}

// Coded returns a failure with a code of its own.
func Coded(status int, code, format string, args ...any) *Failure {
	return &Failure{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

func (f *Failure) Error() string { return f.Message }

// GetStatus implements [huma.StatusError].
func (f *Failure) GetStatus() int { return f.Status }

// GetHeaders implements [huma.HeadersError].
func (f *Failure) GetHeaders() http.Header {
	h := http.Header{}
	if f.Wait > 0 {
		h.Set("Retry-After", strconv.Itoa(int(max(math.Ceil(f.Wait.Seconds()), 1))))
	}
	return h
}

// sent returns the failure as it goes to the client of one request.
func (f *Failure) sent(id string) *Failure {
	out := *f
	out.RequestID = id
	if out.Code == "" {
		out.Code = codeOf(f.Status)
	}
	return &out
}

// codes are those of statuses. A code, these or those of single failures, stands for one
// status: clients need not look at both.
var codes = map[int]string{
	http.StatusBadRequest:            "bad_request",
	http.StatusUnauthorized:          "unauthorized",
	http.StatusForbidden:             "forbidden",
	http.StatusNotFound:              "not_found",
	http.StatusMethodNotAllowed:      "method_not_allowed",
	http.StatusNotAcceptable:         "not_acceptable",
	http.StatusConflict:              "conflict",
	http.StatusRequestEntityTooLarge: "too_large",
	http.StatusUnsupportedMediaType:  "unsupported_media_type",
	http.StatusTooManyRequests:       "too_many_requests",
	http.StatusInternalServerError:   "internal",
	http.StatusServiceUnavailable:    "unavailable",
}

// codeOf returns the code of a status; of one that yaya does not send on purpose, its name.
func codeOf(status int) string {
	if code, ok := codes[status]; ok {
		return code
	}
	name := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r):
			return unicode.ToLower(r)
		case r == '\'':
			return -1
		}
		return '_'
	}, http.StatusText(status))
	return cmp.Or(name, fmt.Sprintf("http_%d", status))
}

// Errors of what an API works with. Their texts, and those of errors that wrap them, are
// for its clients.
var (
	ErrUnknown  = errors.New("not found")
	ErrRefused  = errors.New("that cannot be done")
	ErrStale    = errors.New("it has changed since it was shown")
	ErrFailed   = errors.New("it failed") // on this machine, whatever was asked for
	ErrStopping = errors.New("yaya is shutting down")
)

// known are errors of other packages with what is answered, the same by every API.
var known = []struct {
	err    error
	status int
	code   string        // "" is that of the status
	alone  bool          // clients get err without what wraps it
	wait   time.Duration // when to come back
}{
	{err: control.ErrUnavailable, status: http.StatusServiceUnavailable, wait: 5 * time.Second},
	{err: auth.ErrForbidden, status: http.StatusForbidden},
	{err: auth.ErrBadRequest, status: http.StatusBadRequest},
	{err: auth.ErrRefused, status: http.StatusUnauthorized},
	{err: auth.ErrNotFound, status: http.StatusNotFound},
	{err: auth.ErrConflict, status: http.StatusConflict},
	{err: auth.ErrExists, status: http.StatusConflict},
	{err: auth.ErrBusy, status: http.StatusTooManyRequests, wait: time.Minute},
	{err: session.ErrElsewhere, status: http.StatusServiceUnavailable, code: "node_unavailable", wait: time.Second},
	{err: session.ErrUnavailable, status: http.StatusServiceUnavailable, code: "bridge_unavailable", wait: 5 * time.Second},
	{err: session.ErrBehind, status: http.StatusServiceUnavailable, code: "session_fetched", wait: time.Second},
	{err: session.ErrNotFound, status: http.StatusNotFound},
	{err: loop.ErrCompacting, status: http.StatusConflict, code: "busy", alone: true}, // it is an ErrBusy
	{err: session.ErrBusy, status: http.StatusConflict, code: "busy", alone: true},
	{err: session.ErrDamaged, status: http.StatusConflict, code: "damaged"},
	{err: session.ErrDiskFull, status: http.StatusInsufficientStorage, code: "disk_full", alone: true},
	{err: errnos.NoSpace, status: http.StatusInsufficientStorage, code: "disk_full", alone: true},
	{err: errnos.QuotaUsed, status: http.StatusInsufficientStorage, code: "disk_full", alone: true},
	{err: loop.ErrConflict, status: http.StatusConflict, code: "idempotency_conflict", alone: true},
	{err: loop.ErrTurn, status: http.StatusConflict, code: "unexpected_turn", alone: true},
	{err: loop.ErrQueueFull, status: http.StatusTooManyRequests, code: "queue_full", alone: true},
	{err: loop.ErrNothing, status: http.StatusConflict, code: "nothing_to_retry", alone: true},
	{err: loop.ErrNotRetryable, status: http.StatusConflict, code: "not_retryable", alone: true},
	{err: loop.ErrShutdown, status: http.StatusServiceUnavailable, code: "shutting_down", alone: true},
	{err: ErrStopping, status: http.StatusServiceUnavailable, code: "shutting_down", alone: true},
	{err: ErrUnknown, status: http.StatusNotFound},
	{err: ErrRefused, status: http.StatusBadRequest},
	{err: ErrStale, status: http.StatusConflict},
	{err: ErrFailed, status: http.StatusInternalServerError},
}

// Explain makes an error one that a client may read. Errors that nobody expected, and
// those of this machine, go to the log with the request's id; of the former the client
// is told that id alone.
func Explain(log zerolog.Logger, id string, err error) *Failure {
	f, ok := errors.AsType[*Failure](err)
	for _, k := range known {
		if ok || !errors.Is(err, k.err) {
			continue
		}
		ok, f = true, &Failure{Status: k.status, Code: k.code, Message: err.Error(), Wait: k.wait}
		if k.alone {
			f.Message = k.err.Error()
		}
		if full, ok := errors.AsType[*session.DiskFullError](err); ok {
			f.Message = full.Error()
		}
		if k.status == http.StatusInternalServerError {
			log.Error().Err(err).Str("request_id", id).Msg("a request failed")
		}
	}
	if !ok {
		log.Error().Err(err).Str("request_id", id).Msg("a request failed")
		f = Fail(http.StatusInternalServerError, "internal error, request id %s; yaya's log has the details", id)
	}
	return f.sent(id)
}

// Style words failures for the clients of an API. Its result is sent as JSON, a string as
// plain text.
type Style func(*Failure) any

// Detail is the style of everything that has none of its own: {"detail": "…"}.
func Detail(f *Failure) any {
	return struct {
		Detail string `json:"detail"`
	}{f.Message}
}

// Text is the style of what answers in a protocol of its own, such as MCP, whose clients
// take any JSON for an answer in that protocol.
func Text(f *Failure) any { return f.Message }

// Refuse answers with a failure.
func Refuse(w http.ResponseWriter, r *http.Request, style Style, f *Failure) {
	f = f.sent(Identified(w, r))
	for k, v := range f.GetHeaders() {
		w.Header()[k] = v
	}
	body := style(f)
	if text, ok := body.(string); ok {
		http.Error(w, text, f.Status)
		return
	}
	Write(w, f.Status, body)
}

// Write answers with v as JSON.
func Write(w http.ResponseWriter, status int, v any) {
	raw, err := json.Marshal(v)
	if err != nil { // cannot be: v is of our own types
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	WriteRaw(w, status, append(raw, '\n'))
}

// WriteRaw answers with JSON as it is.
func WriteRaw(w http.ResponseWriter, status int, raw []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(raw) // a client that went away gets nothing
}

// RequestIDHeader tells a client the id of its request.
const RequestIDHeader = "X-Request-Id"

type requestKey struct{}

// RequestID returns the id of a request to an [API], "" if ctx is not of one.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}
