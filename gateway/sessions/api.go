package sessions

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
)

// Error is the body of every answer that is an error.
type Error struct {
	Body ErrorBody `json:"error"`
}

// ErrorBody says what is wrong: a code for programs, a message for people, and the
// id under which yaya's log has more.
type ErrorBody struct {
	Code      string `json:"code" example:"not_found"`
	Message   string `json:"message"`
	RequestID string `json:"request_id"`
	// Decision is the earlier decision, for an approval that was already answered.
	Decision *Answered `json:"decision,omitempty"`
}

// coded is the style of errors.
func coded(f *api.Failure) any {
	decision, _ := f.More.(*Answered)
	return &Error{ErrorBody{f.Code, f.Message, f.RequestID, decision}}
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

// declare makes the API of the service.
func (s *Service) declare() {
	s.API = api.New(api.Config{
		Base: "/v1", Style: coded, Docs: api.For(auth.SessionsRead), Rest: api.For(auth.SessionsRead), Log: s.cfg.Log,
		Info: huma.Info{
			Title: "yaya sessions", Version: s.cfg.Version,
			Description: "Chat sessions with an agentic tool loop. On the same machine the user that runs yaya needs no credentials; elsewhere a device token is sent as a bearer token.",
		},
	})
	s.sessionRoutes()
	s.messageRoutes()
	s.decisionRoutes()
	s.modelRoutes()
	s.mentionRoutes()
	s.fileRoutes()
}

// op describes an operation; scope is what a device needs for it.
func op(method, path, id string, scope auth.Scope, summary string, status int) api.Operation {
	return api.Operation{Method: method, Path: path, ID: id, Tag: "sessions", Summary: summary, Access: api.For(scope), Status: status}
}
