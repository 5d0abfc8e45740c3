package wire

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/gateway/wire/codec"
	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/intake"
)

// Rates of an authenticated connection, and how long a write that is
// under way may take when the connection has to end.
const (
	readSize  = 16 << 10 // bytes of a first buffer
	perSecond = 50
	burst     = 200
	// kernelFactor is how many times as much a kernel may say: it speaks for its
	// agents, and has to catch up with what it could not say.
	kernelFactor = 20

	endGrace = 2 * time.Second
)

// slowGrace is how long a client that does not keep up has to read what is under
// way, and why the connection ends.
var slowGrace = 5 * time.Second

// conn is one client's WebSocket.
type conn struct {
	s   *Server
	ws  *websocket.Conn
	r   *bufio.Reader // ws reads from it
	q   queue
	id  string
	fmt codec.Format
	// passed says that the client is one of another node, which passes on what it says about a topic.
	passed bool

	done    chan struct{} // closed when it is over
	once    sync.Once
	jobs    sync.WaitGroup // what is done for it beside reading
	running atomic.Int64

	pinged time.Time // the sweeper's

	mu      sync.Mutex
	who     auth.Principal
	token   string // that it has shown, "" for the owner
	release func() // of the hold
	subs    map[string]*subscription

	// The reader's own.
	tokens float64
	filled time.Time
	factor float64
}

func newConn(s *Server, ws *websocket.Conn, r *bufio.Reader, f codec.Format) *conn {
	c := &conn{s: s, ws: ws, r: r, id: uuid.NewString(), fmt: f, done: make(chan struct{}), tokens: burst, factor: 1, filled: time.Now(), pinged: time.Now(), release: func() {}}
	c.q.conn = ws.NetConn()
	c.q.ended = func(error) { _ = ws.Close() }
	ws.SetReadLimit(maxAuthFrame)
	// gorilla would answer by itself, and wait for the writer; it would also change
	// its deadline.
	ws.SetPingHandler(func(data string) error {
		if !c.take() {
			return errRate
		}
		c.push(codec.NewFrame(websocket.PongMessage, []byte(data)), false)
		return c.alive()
	})
	ws.SetPongHandler(func(string) error {
		if !c.take() {
			return errRate
		}
		return c.alive()
	})
	ws.SetCloseHandler(func(code int, _ string) error {
		if code == websocket.CloseNoStatusReceived {
			code = websocket.CloseNormalClosure
		}
		c.q.finish(codec.CloseFrame(code, ""), endGrace)
		return nil
	})
	return c
}

var errRate = errors.New("too many messages")

// take takes one message out of the budget.
func (c *conn) take() bool {
	now := time.Now()
	c.tokens = min(c.tokens+now.Sub(c.filled).Seconds()*perSecond*c.factor, burst*c.factor)
	c.filled = now
	if c.tokens < 1 {
		return false
	}
	c.tokens--
	return true
}

func (c *conn) principal() auth.Principal {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.who
}

// shown returns the principal and its token.
func (c *conn) shown() (auth.Principal, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.who, c.token
}

func (c *conn) alive() error { return c.ws.SetReadDeadline(time.Now().Add(c.s.deadAfter)) }

// push queues a frame; who does not keep up is closed.
func (c *conn) push(frame []byte, soon bool) {
	if c.q.push(frame, soon) != nil {
		c.s.stats.slow.Add(1)
		c.q.finish(c.farewell(CloseSlow, tooSlow), slowGrace)
	}
}

// end drops what is queued, says why, and closes.
func (c *conn) end(code int, reason string) { c.q.finish(c.farewell(code, reason), endGrace) }

// leave writes what is queued, says why, and closes.
func (c *conn) leave(code int, reason string) { c.q.flush(c.farewell(code, reason)) }

const tooSlow = "too slow: join again with the cursor you have"

// farewell is an event that says why, for clients that cannot see close codes, and
// the close frame.
func (c *conn) farewell(code int, reason string) []byte {
	payload, err := json.Marshal(disconnect{code, reason})
	if err != nil { // cannot be
		payload = []byte("{}")
	}
	return append(c.fmt.Frame(codec.Message{Topic: "phoenix", Event: "disconnect", Payload: payload}), codec.CloseFrame(code, reason)...)
}

type disconnect struct {
	Code   int    `json:"code"`
	Reason string `json:"reason"`
}

// close cuts the connection and waits for whatever works for it.
func (c *conn) close() {
	c.once.Do(func() { close(c.done) })
	c.q.grace()
	_ = c.ws.Close()
	c.mu.Lock()
	release, subs := c.release, c.subs
	c.subs = nil
	c.mu.Unlock()
	release()
	for _, sub := range subs {
		sub.leave()
	}
	c.q.stop()
	c.jobs.Wait()
}

type authFrame struct {
	Type  string `json:"type"` // "auth"
	Token string `json:"device_token"`
	Sig   string `json:"challenge_sig"` // base64
}

type authChallenge struct {
	Type      string `json:"type"` // "auth_challenge"
	Challenge string `json:"challenge"`
	ServerID  string `json:"server_id"`
}

type authOK struct {
	Type      string `json:"type"` // "auth_ok"
	KernelID  string `json:"kernel_id"`
	SessionID string `json:"session_id"` // of this connection
}

type authFail struct {
	Type   string `json:"type"` // "auth_fail"
	Reason string `json:"reason"`
}

// authenticate is the first exchange: challenge, answer. It tells the client the
// same, whatever the reason for a refusal.
func (c *conn) authenticate(challenge *auth.Challenge, text string, addr netip.Addr) (auth.Principal, error) {
	first, err := c.fmt.Plain(authChallenge{"auth_challenge", text, c.s.cfg.Authority.ServerID()})
	if err != nil {
		return auth.Principal{}, err
	}
	c.push(first, false)
	if err := c.ws.SetReadDeadline(time.Now().Add(authTimeout)); err != nil {
		return auth.Principal{}, err
	}
	kind, data, err := c.ws.ReadMessage()
	if err != nil {
		return auth.Principal{}, err
	}
	c.fmt.Msgpack = kind == websocket.BinaryMessage // as the client speaks, so it is answered
	p, err := c.prove(challenge, data, addr)
	if err == nil {
		return p, nil
	}
	if errors.Is(err, auth.ErrBehind) { // nothing is wrong with the client, and another node may know more
		c.q.flush(codec.CloseFrame(CloseRestart, "nobody can be authenticated now"))
		return auth.Principal{}, err
	}
	frame, ferr := c.fmt.Plain(authFail{"auth_fail", "the token or the signature is not acceptable"})
	if ferr == nil {
		c.push(frame, false)
		c.q.flush(codec.CloseFrame(CloseUnauthed, "not authenticated"))
	}
	return auth.Principal{}, errors.Join(err, ferr)
}

func (c *conn) prove(challenge *auth.Challenge, data []byte, addr netip.Addr) (auth.Principal, error) {
	raw, err := c.fmt.ToJSON(data)
	if err != nil {
		return auth.Principal{}, err
	}
	var f authFrame
	if err := api.Unmarshal(raw, &f); err != nil {
		return auth.Principal{}, err
	}
	sig, err := base64.StdEncoding.DecodeString(f.Sig)
	if err != nil || f.Type != "auth" {
		return auth.Principal{}, errors.New("not an auth frame")
	}
	if c.s.cfg.Attempts.Blocked(addr) > 0 && !c.s.cfg.Authority.Knows(f.Token) {
		return auth.Principal{}, errors.New("too many failed attempts")
	}
	p, err := c.s.cfg.Authority.Prove(challenge, f.Token, sig)
	c.token = f.Token
	if err != nil && !errors.Is(err, auth.ErrBehind) {
		c.s.cfg.Attempts.Fail(addr)
	}
	return p, err
}

// become makes somebody the connection's principal: its rights are those that
// count, and when they end, so does the connection.
func (c *conn) become(p auth.Principal, token string) {
	release := c.s.cfg.Authority.Hold(p, func(cause error) {
		if errors.Is(cause, auth.ErrBehind) {
			c.end(CloseRestart, "this node is cut off from the others: come back")
			return
		}
		c.end(CloseUnauthed, "the token has ended: refresh it, or enroll again")
	})
	c.mu.Lock()
	old := c.release
	c.who, c.token, c.release = p, token, release
	c.mu.Unlock()
	old()
}

// welcome tells a client that it is in, and gives it what a known client may do.
func (c *conn) welcome(p auth.Principal) error {
	ok, err := c.fmt.Plain(authOK{"auth_ok", c.s.cfg.KernelID, c.id})
	if err != nil {
		return err
	}
	c.push(ok, false)
	c.become(p, c.token)
	if c.passed || auth.Allow(p, auth.KernelAttach) == nil { // the other node limits what its client says
		c.factor = kernelFactor
		c.tokens *= kernelFactor
	}
	c.ws.SetReadLimit(maxMessage)
	return nil
}

// serve reads until the connection is over. There is one goroutine like this for
// every client, nearly always waiting: it waits where the stack is shallow, and has
// another one do what needs a deep stack, so that its own stays at the 2 KiB it
// began with.
func (c *conn) serve() {
	more := make(chan bool)
	for c.alive() == nil {
		if _, err := c.r.Peek(1); err != nil {
			return
		}
		go func() { more <- c.next() }()
		if !<-more {
			return
		}
	}
}

// next reads and handles one message; false ends the connection.
func (c *conn) next() bool {
	kind, r, err := c.ws.NextReader()
	if err == nil && !c.take() {
		err = errRate
	}
	if errors.Is(err, errRate) {
		c.end(CloseTooMany, "too many messages")
	}
	return err == nil && c.message(kind, r)
}

// message handles one message; false ends the connection.
func (c *conn) message(kind int, r io.Reader) bool {
	if kind != c.fmt.FrameType() {
		c.end(closeUnsupported, "this connection has another encoding")
		return false
	}
	buf := bufpool.Get(readSize)
	defer func() { buf.Release() }()
	data, held, err := intake.Bodies().Read(buf.B, r, -1, c.party(), maxMessage)
	buf.B = data
	defer held.Release()
	switch {
	case errors.Is(err, errRate):
		c.end(CloseTooMany, "too many messages")
		return false
	case errors.Is(err, intake.ErrBusy):
		c.end(websocket.CloseTryAgainLater, err.Error())
		return false
	case err != nil:
		return false
	}
	if kind == websocket.TextMessage && !utf8.Valid(buf.B) {
		c.end(websocket.CloseInvalidFramePayloadData, "not UTF-8")
		return false
	}
	raw, err := c.fmt.ToJSON(buf.B)
	var m codec.Message
	if err == nil {
		m, err = c.fmt.Parse(raw)
	}
	if err != nil {
		c.end(CloseBadMessage, "a message is not what docs/WIRE.md says")
		c.s.cfg.Log.Debug().Err(err).Msg("a client's message was refused")
		return false
	}
	c.s.handle(c, m)
	return true
}

// party is whose share of memory messages are counted for, by the name that HTTP has
// for it, too.
func (c *conn) party() string { return c.principal().Name() }

// reply answers a message that has a ref.
func (c *conn) reply(m codec.Message, response any, err error) {
	if m.Ref == nil {
		return
	}
	status := "ok"
	if err != nil {
		status, response = "error", c.s.problem(err)
	}
	if response == nil {
		response = struct{}{}
	}
	payload, merr := json.Marshal(struct {
		Status   string `json:"status"`
		Response any    `json:"response"`
	}{status, response})
	if merr != nil {
		c.s.cfg.Log.Error().Err(merr).Msg("an answer could not be written")
		payload = []byte(`{"status":"error","response":{"reason":"internal error"}}`)
	}
	c.push(c.fmt.Frame(codec.Message{JoinRef: m.JoinRef, Ref: m.Ref, Topic: m.Topic, Event: "phx_reply", Payload: payload}), false)
}
