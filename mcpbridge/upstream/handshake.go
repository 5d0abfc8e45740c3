package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// identity is how yaya introduces itself.
type identity struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// handshake settles the era and initialises the session. It reports whether the
// server refused the era that it was asked for first.
//
// Silence decides nothing: the handshake waits for its answer as long as ctx allows, because a
// server that is still starting reads it later, and some servers (the Python SDK) fix the era
// of the connection with the first message that they read.
func (s *session) handshake(ctx context.Context, who identity, ask asking) (refusal bool, err error) {
	info, err := json.Marshal(who)
	if err != nil {
		return false, err
	}
	one, other := s.initialize, s.discover
	if ask.first == servers.EraModern {
		one, other = other, one
	}
	if err = one(ctx, info); err == nil || s.final(ctx, err) {
		return false, err
	}
	refusal = isRefusal(err)
	if ask.only {
		return refusal, &eraError{ask.first, err}
	}
	second := other(ctx, info)
	switch {
	case second == nil:
		if ask.first == servers.EraModern {
			s.p.doubt(err)
		}
		return refusal, nil
	case ask.first == servers.EraModern, s.final(ctx, second):
		return false, second // the outcome of initialize says more
	}
	return false, err
}

// final reports whether an error of a handshake would persist in the other era.
func (s *session) final(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, feature.ErrNotSent) || s.t.failed() != nil {
		return true // the server is not there
	}
	if se, ok := errors.AsType[*statusError](err); ok && se.code == http.StatusUnauthorized {
		return true
	}
	wait, ok := errors.AsType[patient](err)
	return ok && wait.RetryAfter() > 0 // the server asked not to be retried at once
}

// isRefusal reports whether a server answered that it does not know a handshake, as opposed to
// failing at it.
func isRefusal(err error) bool {
	if errors.Is(err, errNoVersion) {
		return true
	}
	if re, ok := errors.AsType[*jsonrpc.Error](err); ok {
		switch re.Code {
		case jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidParams, jsonrpc.CodeInvalidRequest, mcp.UNSUPPORTED_PROTOCOL_VERSION:
			return true
		}
		return false
	}
	se, ok := errors.AsType[*statusError](err)
	if !ok {
		return false
	}
	switch se.code {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusNotImplemented:
		return true
	}
	return false
}

// oddError says that a server's answer is not MCP.
type oddError struct{ error }

func (e *oddError) Unwrap() error { return e.error }

// isAnswer reports whether an error is an answer of the server itself, however malformed. A
// server that was not reached, or is too busy, gave no answer.
func isAnswer(err error) bool {
	if se, ok := errors.AsType[*statusError](err); ok {
		switch se.code {
		case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return false
		}
		return true
	}
	_, known := errors.AsType[*jsonrpc.Error](err)
	_, odd := errors.AsType[*oddError](err)
	return known || odd
}

// doubt remembers for a while that a server of the legacy era gave no usable answer to
// server/discover. Unlike a refusal that the protocol defines, this may be a temporary fault,
// so it is not saved.
func (p *Provider) doubt(err error) {
	if !isAnswer(err) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = time.Now()
}

// versionHolder is implemented by the transport that puts the version in a
// header.
type versionHolder interface {
	begin(version string, modern bool)
}

var (
	errNoVersion  = errors.New("the server's answer names no protocol version that yaya supports")
	errNoAgreeing = errors.New("the server refuses every protocol version that it claims to support")
)

// discover opens a modern session with server/discover.
func (s *session) discover(ctx context.Context, info []byte) error {
	version := mcp.ProtocolVersion20260728
	for range 2 {
		s.speak(version, true, info)
		res, err := s.ask(ctx, methodDiscover, nil)
		if err == nil {
			if s.acceptDiscovery(res, version) {
				return nil
			}
			err = errNoVersion
		}
		s.speak("", false, nil)
		v := supportedVersion(err)
		if v == "" || !mcp.IsModernProtocol(v) {
			return fmt.Errorf("%s: %w", methodDiscover, err)
		}
		version = v
	}
	return fmt.Errorf("%s: %w", methodDiscover, errNoAgreeing)
}

// supportedVersion returns the newest version that both sides support according to an
// unsupported-version error. It returns "" for other errors, or without a common version.
func supportedVersion(err error) string {
	re, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || re.Code != mcp.UNSUPPORTED_PROTOCOL_VERSION {
		return ""
	}
	var d struct {
		Supported []string `json:"supported"`
	}
	if json.Unmarshal(re.Data, &d) != nil {
		return ""
	}
	return mcp.NegotiateMutuallySupportedVersion(d.Supported)
}

// patient is an error that tells when to retry.
type patient interface {
	error
	RetryAfter() time.Duration
}

func (s *session) acceptDiscovery(raw []byte, version string) bool {
	var d struct {
		SupportedVersions []string        `json:"supportedVersions"`
		Capabilities      json.RawMessage `json:"capabilities"`
		ServerInfo        identity        `json:"serverInfo"`
		Instructions      string          `json:"instructions"`
		Meta              struct {
			ServerInfo identity `json:"io.modelcontextprotocol/serverInfo"`
		} `json:"_meta"`
	}
	if json.Unmarshal(raw, &d) != nil || !slices.Contains(d.SupportedVersions, version) {
		return false
	}
	who := d.Meta.ServerInfo
	if who.Name == "" {
		who = d.ServerInfo
	}
	s.peer = peerOf(servers.EraModern, version, who, d.Capabilities)
	s.peer.Instructions = d.Instructions
	s.tasks = relay.HasTasks(s.peer.caps)
	return true
}

func peerOf(era servers.Era, version string, who identity, caps json.RawMessage) peer {
	p := peer{Era: era, Version: version, Name: feature.Clean(who.Name, 100), ServerVers: feature.Clean(who.Version, 50)}
	if obj, err := jsonrpc.ParseObject(bytes.Clone(caps)); err == nil {
		p.caps = obj
	}
	return p
}

// speak fixes the protocol version of the session.
func (s *session) speak(version string, modern bool, info []byte) {
	s.hop = nil
	if modern {
		m := append([]byte(nil), `"`+mcp.MetaKeyProtocolVersion+`":`...)
		m = jsonrpc.AppendString(m, version)
		m = append(m, `,"`+mcp.MetaKeyClientInfo+`":`...)
		s.hop = append(m, info...)
	}
	if h, ok := s.t.(versionHolder); ok {
		h.begin(version, modern)
	}
}

// declared returns the client capabilities of a legacy session: those of its client. A shared
// session declares everything that some client may support; clients without the capability
// refuse.
func (s *session) declared() []byte {
	if s.first != nil && s.of.client != "" {
		if caps := s.first.Capabilities(); caps.IsObject() {
			return caps.Raw()
		}
		return []byte("{}")
	}
	roots := ""
	if len(s.p.cfg.Server.Roots) > 0 {
		roots = `"roots":{},`
	}
	return []byte(`{` + roots + `"sampling":{},"elicitation":{"form":{},"url":{}},"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`)
}

// initialize opens a legacy session.
func (s *session) initialize(ctx context.Context, info []byte) error {
	raw, err := s.askInitialize(ctx, mcp.LATEST_LEGACY_PROTOCOL_VERSION, info)
	if v := supportedVersion(err); v != "" && !mcp.IsModernProtocol(v) && v != mcp.LATEST_LEGACY_PROTOCOL_VERSION {
		raw, err = s.askInitialize(ctx, v, info)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", methodInitialize, err)
	}
	var res struct {
		ProtocolVersion string          `json:"protocolVersion"`
		Capabilities    json.RawMessage `json:"capabilities"`
		ServerInfo      identity        `json:"serverInfo"`
		Instructions    string          `json:"instructions"`
	}
	if err := json.Unmarshal(raw, &res); err != nil {
		return fmt.Errorf("initialize: the server's answer is malformed: %w", err)
	}
	if !mcp.IsValidProtocolVersion(res.ProtocolVersion) || mcp.IsModernProtocol(res.ProtocolVersion) {
		return fmt.Errorf("initialize: the server wants protocol version %q, which yaya does not speak here", cut.Text(res.ProtocolVersion, 40))
	}
	s.peer = peerOf(servers.EraLegacy, res.ProtocolVersion, res.ServerInfo, res.Capabilities)
	s.peer.Instructions = res.Instructions
	s.speak(res.ProtocolVersion, false, nil)
	if err := s.t.send(ctx, jsonrpc.AppendRequest(nil, nil, noteInitialized, nil)); err != nil {
		return fmt.Errorf("%s: %w", noteInitialized, err)
	}
	return nil
}

func (s *session) askInitialize(ctx context.Context, version string, info []byte) ([]byte, error) {
	params := append([]byte(`{"protocolVersion":"`+version+`","capabilities":`), s.declared()...)
	params = append(append(params, `,"clientInfo":`...), info...)
	return s.ask(ctx, methodInitialize, append(params, '}'))
}
