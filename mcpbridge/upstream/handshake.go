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
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// identity is how we introduce ourselves.
type identity struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// handshake settles the era and initialises the session. known is what an
// earlier connection to the same server came to.
func (s *session) handshake(ctx context.Context, who identity, want servers.Era) error {
	info, err := json.Marshal(who)
	if err != nil {
		return err
	}
	if want != servers.EraLegacy {
		ok, err := s.probe(ctx, info, want)
		if ok || err != nil {
			return err
		}
	}
	return s.initialize(ctx, info)
}

// versionHolder is implemented by the transport that puts the version in a
// header.
type versionHolder interface {
	begin(version string, modern bool)
}

// probe asks server/discover. It reports whether the server is modern; an error
// is one that initialize cannot mend.
func (s *session) probe(ctx context.Context, info []byte, want servers.Era) (bool, error) {
	version := mcp.ProtocolVersion20260728
	pctx := ctx
	if want != servers.EraModern {
		wait := probeTimeout
		if s.p.cfg.Server.Transport != servers.Stdio {
			wait = probeTimeoutHTTP
		}
		limit := newLimit(ctx, wait)
		defer limit.stop()
		pctx = limit
	}
	for range 2 {
		s.speak(version, true, info)
		res, err := s.ask(pctx, methodDiscover, nil)
		if err == nil {
			if s.acceptDiscovery(res, version) {
				return true, nil
			}
			err = errors.New("its answer to server/discover names no version that yaya speaks")
		}
		s.speak("", false, nil)
		re, rpc := errors.AsType[*jsonrpc.Error](err)
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case rpc && re.Code == mcp.UNSUPPORTED_PROTOCOL_VERSION:
			if v := commonVersion(re.Data); v != "" && mcp.IsModernProtocol(v) {
				version = v
				continue
			}
		case errors.Is(err, feature.ErrNotSent):
			return false, err // it is not there; initialize would not find it either
		}
		if se, ok := errors.AsType[*statusError](err); ok && se.code == http.StatusUnauthorized {
			return false, err
		}
		if wait, ok := errors.AsType[patient](err); ok && wait.RetryAfter() > 0 {
			return false, err // asking again at once is what it does not want
		}
		if want == servers.EraModern {
			return false, fmt.Errorf("it does not speak the modern era that is configured: %w", err)
		}
		return false, nil
	}
	return false, errors.New("it refuses every protocol version that it says it speaks")
}

// patient is an error that says when it makes sense to try again.
type patient interface {
	error
	RetryAfter() time.Duration
}

// commonVersion picks the newest version that both sides know out of the data
// of an unsupported-version error.
func commonVersion(data []byte) string {
	var d struct {
		Supported []string `json:"supported"`
	}
	if json.Unmarshal(data, &d) != nil {
		return ""
	}
	return mcp.NegotiateMutuallySupportedVersion(d.Supported)
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

// speak fixes the version for everything that follows.
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

// declared are the client capabilities of a legacy session: those of the client
// that it belongs to; a shared one declares what some client may be able to do,
// and the others refuse.
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

func (s *session) initialize(ctx context.Context, info []byte) error {
	params := append([]byte(`{"protocolVersion":"`+mcp.LATEST_LEGACY_PROTOCOL_VERSION+`","capabilities":`), s.declared()...)
	params = append(append(params, `,"clientInfo":`...), info...)
	raw, err := s.ask(ctx, methodInitialize, append(params, '}'))
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
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
		return fmt.Errorf("initialize: the server wants protocol version %q, which yaya does not speak here", clip(res.ProtocolVersion, 40))
	}
	s.peer = peerOf(servers.EraLegacy, res.ProtocolVersion, res.ServerInfo, res.Capabilities)
	s.peer.Instructions = res.Instructions
	s.speak(res.ProtocolVersion, false, nil)
	if err := s.t.send(ctx, jsonrpc.AppendRequest(nil, nil, noteInitialized, nil)); err != nil {
		return fmt.Errorf("%s: %w", noteInitialized, err)
	}
	return nil
}
