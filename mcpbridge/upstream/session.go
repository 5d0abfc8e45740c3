package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Methods of the protocol that this side uses.
const (
	methodInitialize = "initialize"
	methodDiscover   = "server/discover"
	methodListTools  = "tools/list"
	methodCallTool   = "tools/call"
	methodListen     = "subscriptions/listen"

	noteInitialized  = "notifications/initialized"
	noteCancelled    = "notifications/cancelled"
	noteToolsChanged = "notifications/tools/list_changed"
)

// Times of the protocol (C.2).
const (
	probeTimeout = time.Second // for server/discover; a silent server is a legacy one
	callTimeout  = 60 * time.Second
	maxCall      = 10 * time.Minute // also with progress
)

// request is one message that wants an answer. The id in body is id.
type request struct {
	id     int64
	method string
	body   []byte
	header http.Header // extra headers, HTTP only
	onNote func(note)  // nil when nobody listens
}

// transport carries messages to one server and back.
type transport interface {
	// roundTrip sends a request and waits for its answer. An error that wraps
	// feature.ErrNotSent means that the server never looked at it.
	roundTrip(ctx context.Context, req *request) (reply, error)
	// copies reports whether a request's body is no longer used once roundTrip
	// has returned without an error.
	copies() bool
	// send sends a notification or an answer.
	send(ctx context.Context, msg []byte) error
	// done is closed when the connection is lost; failed says why.
	done() <-chan struct{}
	failed() error
	// close ends the connection and waits for all that belongs to it.
	close(ctx context.Context)
}

// peer is what a server says about itself.
type peer struct {
	Era         servers.Era `json:"era"`
	Version     string      `json:"protocol_version"`
	Name        string      `json:"name"`
	ServerVers  string      `json:"version"`
	ListChanged bool        `json:"-"`
	HasTools    bool        `json:"-"`
}

// session is one initialised connection.
type session struct {
	t     transport
	peer  peer
	meta  []byte // raw members of _meta that the modern era wants, without braces
	ids   atomic.Int64
	slots chan struct{}

	life   context.Context
	cancel context.CancelFunc
	work   group
}

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
	pctx, cancel := context.WithTimeout(ctx, probeTimeout)
	if want == servers.EraModern {
		cancel()
		pctx, cancel = context.WithCancel(ctx)
	}
	defer cancel()
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
		if want == servers.EraModern {
			return false, fmt.Errorf("it does not speak the modern era that is configured: %w", err)
		}
		return false, nil
	}
	return false, errors.New("it refuses every protocol version that it says it speaks")
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
		SupportedVersions []string     `json:"supportedVersions"`
		Capabilities      capabilities `json:"capabilities"`
		ServerInfo        identity     `json:"serverInfo"`
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
	return true
}

type capabilities struct {
	Tools *struct {
		ListChanged bool `json:"listChanged"`
	} `json:"tools"`
}

func peerOf(era servers.Era, version string, who identity, caps capabilities) peer {
	return peer{
		Era: era, Version: version, Name: feature.Clean(who.Name, 100), ServerVers: feature.Clean(who.Version, 50),
		HasTools: caps.Tools != nil, ListChanged: caps.Tools != nil && caps.Tools.ListChanged,
	}
}

// speak fixes the version for everything that follows.
func (s *session) speak(version string, modern bool, info []byte) {
	s.meta = nil
	if modern {
		m := append([]byte(nil), `"`+mcp.MetaKeyProtocolVersion+`":`...)
		m = jsonrpc.AppendString(m, version)
		m = append(m, `,"`+mcp.MetaKeyClientCapabilities+`":{},"`+mcp.MetaKeyClientInfo+`":`...)
		s.meta = append(m, info...)
	}
	if h, ok := s.t.(versionHolder); ok {
		h.begin(version, modern)
	}
}

func (s *session) initialize(ctx context.Context, info []byte) error {
	params := append([]byte(`{"protocolVersion":"`+mcp.LATEST_LEGACY_PROTOCOL_VERSION+`","capabilities":{},"clientInfo":`), info...)
	raw, err := s.ask(ctx, methodInitialize, append(params, '}'))
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	var res struct {
		ProtocolVersion string       `json:"protocolVersion"`
		Capabilities    capabilities `json:"capabilities"`
		ServerInfo      identity     `json:"serverInfo"`
	}
	if err := json.Unmarshal(raw, &res); err != nil {
		return fmt.Errorf("initialize: the server's answer is malformed: %w", err)
	}
	if !mcp.IsValidProtocolVersion(res.ProtocolVersion) || mcp.IsModernProtocol(res.ProtocolVersion) {
		return fmt.Errorf("initialize: the server wants protocol version %q, which yaya does not speak here", clip(res.ProtocolVersion, 40))
	}
	s.peer = peerOf(servers.EraLegacy, res.ProtocolVersion, res.ServerInfo, res.Capabilities)
	s.speak(res.ProtocolVersion, false, nil)
	if err := s.t.send(ctx, jsonrpc.AppendRequest(nil, nil, noteInitialized, nil)); err != nil {
		return fmt.Errorf("%s: %w", noteInitialized, err)
	}
	return nil
}

// subscribe asks for the notifications that concern no request: a GET stream in
// the legacy era over HTTP, subscriptions/listen in the modern one.
func (s *session) subscribe() {
	if h, ok := s.t.(*httpTransport); ok && s.peer.Era == servers.EraLegacy {
		h.listen()
		return
	}
	if s.peer.Era != servers.EraModern || !s.peer.ListChanged {
		return
	}
	s.work.Go(func() {
		for wait := time.Second; s.life.Err() == nil; wait = min(2*wait, time.Minute) {
			begun := time.Now()
			// The answer comes when the server ends the subscription; until then
			// the transport hands on what arrives.
			_, err := s.exchange(s.life, methodListen, []byte(`{"notifications":{"toolsListChanged":true}}`), nil, nil)
			if time.Since(begun) > time.Minute {
				wait = time.Second
			}
			if re, ok := errors.AsType[*jsonrpc.Error](err); ok && re.Code == jsonrpc.CodeMethodNotFound {
				return
			}
			select {
			case <-s.life.Done():
			case <-s.t.done():
				return
			case <-time.After(wait):
			}
		}
	})
}

// ask sends a request of our own and returns its result.
func (s *session) ask(ctx context.Context, method string, params []byte) ([]byte, error) {
	r, err := s.exchange(ctx, method, params, nil, nil)
	if err != nil {
		return nil, err
	}
	return r.result.Raw(), nil
}

// exchange sends a request with raw params and waits. An error object of the
// server is returned as a *jsonrpc.Error.
func (s *session) exchange(ctx context.Context, method string, params []byte, onNote func(note), header http.Header) (reply, error) {
	if params == nil {
		params = []byte("{}")
	}
	obj, err := jsonrpc.ParseObject(params)
	if err != nil {
		return reply{}, err
	}
	r, err := s.relay(ctx, method, obj, nil, onNote, header)
	if err == nil && r.err != nil {
		return reply{}, jsonrpc.ParseError(r.err)
	}
	return r, err
}

// relay sends a request whose params are obj with edits and waits. What the
// server answered, result or error, comes back raw.
func (s *session) relay(ctx context.Context, method string, obj jsonrpc.Object, edits []jsonrpc.Edit, onNote func(note), header http.Header) (reply, error) {
	id := s.ids.Add(1)
	req := request{id: id, method: method, onNote: onNote}
	buf := bufpool.Get(len(obj.Raw()) + len(s.meta) + 192)
	body := buf.B
	body = append(body, `{"jsonrpc":"2.0","id":`...)
	body = strconv.AppendInt(body, id, 10)
	body = append(body, `,"method":"`...)
	body = append(body, method...)
	body = append(body, `","params":`...)
	if meta, changed := s.metaFor(obj.Get("_meta"), id, onNote != nil); changed {
		edits = append(edits, jsonrpc.Edit{Name: "_meta", Value: meta})
	}
	body = obj.Append(body, edits...)
	req.body = append(body, '}')
	if s.peer.Era == servers.EraModern || method == methodDiscover || method == methodListen {
		req.header = modernHeader(method, obj, edits, header)
	}
	r, err := s.t.roundTrip(ctx, &req)
	if buf.B = req.body; err == nil && s.t.copies() {
		buf.Release()
	}
	if err != nil && ctx.Err() != nil && method != methodInitialize {
		s.abandon(id, context.Cause(ctx))
	}
	return r, err
}

// metaFor makes the _meta of a request: the caller's, without the keys that are
// the hop's own business, with ours. It reports false when the caller's stays.
func (s *session) metaFor(callers []byte, id int64, progress bool) ([]byte, bool) {
	if callers == nil && !progress && s.meta == nil {
		return nil, false
	}
	out := []byte{'{'}
	comma := func() {
		if len(out) > 1 {
			out = append(out, ',')
		}
	}
	if callers != nil {
		if obj, err := jsonrpc.ParseObject(callers); err == nil {
			for i := range obj.Len() {
				name, value := obj.At(i)
				if name == "progressToken" || isReserved(name) {
					continue
				}
				comma()
				out = jsonrpc.AppendString(out, name)
				out = append(append(out, ':'), value...)
			}
		}
	}
	if s.meta != nil {
		comma()
		out = append(out, s.meta...)
	}
	if progress {
		comma()
		out = append(out, `"progressToken":`...)
		out = strconv.AppendInt(out, id, 10)
	}
	if len(out) == 1 {
		return nil, true // nothing is left: the member goes
	}
	return append(out, '}'), true
}

// isReserved reports whether a key of _meta belongs to the protocol's own hop.
func isReserved(name string) bool {
	const prefix = "io.modelcontextprotocol/"
	return len(name) > len(prefix) && name[:len(prefix)] == prefix
}

func modernHeader(method string, obj jsonrpc.Object, edits []jsonrpc.Edit, extra http.Header) http.Header {
	h := http.Header{mcp.HeaderMethod: {method}}
	name, ok := obj.String("name")
	for _, e := range edits {
		if e.Name == "name" {
			name, ok = jsonrpc.AsString(e.Value)
		}
	}
	if ok && method == methodCallTool {
		if v, ok := mcp.EncodeHeaderValue(name); ok {
			h[mcp.HeaderName] = []string{v}
		}
	}
	for k, v := range extra {
		h[k] = v
	}
	return h
}

// abandon tells the server that nobody waits any more. Over modern HTTP the
// closed response stream says so already.
func (s *session) abandon(id int64, why error) {
	if _, overHTTP := s.t.(*httpTransport); overHTTP && s.peer.Era == servers.EraModern {
		return
	}
	params := append([]byte(`{"requestId":`), strconv.FormatInt(id, 10)...)
	params = append(params, `,"reason":`...)
	params = jsonrpc.AppendString(params, why.Error())
	msg := jsonrpc.AppendRequest(nil, nil, noteCancelled, append(params, '}'))
	s.work.Go(func() {
		ctx, cancel := context.WithTimeout(s.life, 5*time.Second)
		defer cancel()
		_ = s.t.send(ctx, msg) // the server may be the reason
	})
}

// acquire takes one of the session's places for requests in flight.
func (s *session) acquire(ctx context.Context) error {
	select {
	case s.slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %d calls are in flight and the server is slow: %w", feature.ErrNotSent, maxInFlight, ctx.Err())
	}
}

func (s *session) release() { <-s.slots }

func (s *session) close(ctx context.Context) {
	s.cancel()
	s.t.close(ctx)
	s.work.Close()
}
