package sessions

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/yaya-ai/yaya/gateway/openapi"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/session"
)

// Error is the body of every answer that is none.
type Error struct {
	status int
	Body   ErrorBody `json:"error"`
}

// ErrorBody says what is wrong: a code for programs, a message for people, and the
// id under which yaya's log has more.
type ErrorBody struct {
	Code      string `json:"code" example:"not_found"`
	Message   string `json:"message"`
	RequestID string `json:"request_id"`
	// Decision is what was decided before, for an approval that was answered already.
	Decision *Answered `json:"decision,omitempty"`
}

func (e *Error) Error() string { return e.Body.Message }

// GetStatus implements [huma.StatusError].
func (e *Error) GetStatus() int { return e.status }

func problem(status int, code, format string, args ...any) *Error {
	return &Error{status: status, Body: ErrorBody{Code: code, Message: fmt.Sprintf(format, args...)}}
}

// codes name what has no code of its own.
var codes = map[int]string{
	http.StatusBadRequest: "bad_request", http.StatusNotFound: "not_found", http.StatusMethodNotAllowed: "method_not_allowed", http.StatusConflict: "conflict",
	http.StatusRequestEntityTooLarge: "too_large", http.StatusUnsupportedMediaType: "unsupported_media_type", http.StatusNotAcceptable: "not_acceptable", http.StatusServiceUnavailable: "busy",
}

// worded makes an error of the library one of ours.
func worded(f *openapi.Failure) *Error {
	code, known := codes[f.Status]
	switch {
	case f.Status >= http.StatusInternalServerError:
		code = "internal"
	case !known:
		code = "error"
	}
	return problem(f.Status, code, "%s", f.Message)
}

// kernelErrors are errors of the kernel with what is answered.
var kernelErrors = []struct {
	err    error
	status int
	code   string
}{
	{session.ErrNotFound, http.StatusNotFound, "not_found"},
	{session.ErrBusy, http.StatusConflict, "busy"},
	{loop.ErrConflict, http.StatusConflict, "idempotency_conflict"},
	{loop.ErrTurn, http.StatusConflict, "unexpected_turn"},
	{loop.ErrQueueFull, http.StatusTooManyRequests, "queue_full"},
	{loop.ErrNothing, http.StatusConflict, "nothing_to_retry"},
	{loop.ErrNotRetryable, http.StatusConflict, "not_retryable"},
	{loop.ErrShutdown, http.StatusServiceUnavailable, "shutting_down"},
	{session.ErrDiskFull, http.StatusInsufficientStorage, "disk_full"},
	{errStops, http.StatusServiceUnavailable, "shutting_down"},
}

var errStops = errors.New("yaya is shutting down")

// answer makes an error one that its caller may read.
func (s *Service) answer(ctx context.Context, err error) *Error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		for _, k := range kernelErrors {
			if errors.Is(err, k.err) {
				e = problem(k.status, k.code, "%v", k.err)
				ok = true
				break
			}
		}
	}
	if !ok {
		s.cfg.Log.Error().Err(err).Str("request_id", requestID(ctx)).Msg("a request failed")
		e = problem(http.StatusInternalServerError, "internal", "internal error; yaya's log has the details")
	}
	out := *e
	out.Body.RequestID = requestID(ctx)
	return &out
}

// refuse writes an error.
func (s *Service) refuse(w http.ResponseWriter, r *http.Request, err error) {
	e := s.answer(r.Context(), err)
	raw, merr := json.Marshal(e)
	if merr != nil { // cannot be
		raw = []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.status)
	_, _ = w.Write(append(raw, '\n')) // a client that went away gets nothing
}

type requestKey struct{}

func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}

// newID makes an id that sorts by time: 48 bits of milliseconds and 80 random ones.
func newID(prefix string, now time.Time) string {
	var b [16]byte
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(now.UnixMilli())) //nolint:gosec // after 1970
	copy(b[:], ms[2:])
	_, _ = rand.Read(b[6:]) // crypto/rand never fails
	return prefix + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}

// routes makes the handler. The OpenAPI document is made once: it does not change.
func (s *Service) routes() http.Handler {
	mux := http.NewServeMux()
	api := openapi.New(mux, huma.Info{
		Title: "yaya sessions", Version: s.cfg.Version,
		Description: "Chat sessions with an agentic tool loop. On the same machine the user that runs yaya needs no credentials; elsewhere a device token is sent as a bearer token.",
	}, func(ctx huma.Context, f *openapi.Failure) any { return s.answer(ctx.Context(), worded(f)) })
	s.sessionRoutes(api)
	s.messageRoutes(api)
	s.decisionRoutes(api)
	s.describe(api.OpenAPI())
	mux.HandleFunc("GET /v1/sessions/{session_id}/events", s.events)
	mux.HandleFunc("GET /v1/sessions/{session_id}/export", s.export)
	mux.HandleFunc("POST /v1/sessions/{session_id}/attachments", s.attach)
	mux.HandleFunc("GET /v1/sessions/{session_id}/attachments/{name}", s.attachment)
	mux.HandleFunc("GET /v1/sessions/{session_id}/artifacts/{artifact_id}", s.artifact)
	openapi.Serve(mux, "/v1", api.OpenAPI(), s.refuse)
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		if allowed := openapi.Methods(mux, r, "/v1/"); allowed != "" {
			w.Header().Set("Allow", allowed)
			s.refuse(w, r, problem(http.StatusMethodNotAllowed, "method_not_allowed", "this resource knows %s", allowed))
			return
		}
		s.refuse(w, r, problem(http.StatusNotFound, "not_found", "there is no such resource"))
	})
	return s.outer(mux)
}

// outer gives a request its id, and reads JSON bodies strictly and bounded before
// anybody sees them.
func (s *Service) outer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := "req_" + rand.Text()
		r = r.WithContext(context.WithValue(r.Context(), requestKey{}, id))
		h := w.Header()
		h.Set("X-Request-Id", id)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		upload := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/attachments")
		if !upload {
			if err := openapi.Strict(w, r); err != nil {
				s.refuse(w, r, problem(err.Status, codes[err.Status], "%s", err.Detail))
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// op describes an operation; scope is what a device needs for it.
func op(method, path, id, scope, summary string, status int) huma.Operation {
	return openapi.Operation("sessions", method, path, id, scope, summary, status)
}

// handle adapts a handler: its errors become ones that its caller may read.
func handle[I, O any](s *Service, f func(context.Context, *I) (*O, error)) func(context.Context, *I) (*O, error) {
	return func(ctx context.Context, in *I) (*O, error) {
		out, err := f(ctx, in)
		if err != nil {
			return nil, s.answer(ctx, err)
		}
		return out, nil
	}
}
