package client

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/wire/codec"
)

// Limits of a connection, as seen from here.
const (
	dialTimeout   = 20 * time.Second
	maxFrame      = 4 << 20
	silence       = 60 * time.Second // the server pings every 20 s
	writeDeadline = 10 * time.Second
)

// conn is one authenticated connection.
type conn struct {
	ws      *websocket.Conn
	fmt     codec.Format
	Kernel  string
	Session string

	write sync.Mutex
}

// dial connects and proves who this is.
func dial(ctx context.Context, c *Credentials, tlsConfig *tls.Config, msgpack bool) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	tlsConfig, err := c.tlsConfig(tlsConfig)
	if err != nil {
		return nil, err
	}
	d := websocket.Dialer{HandshakeTimeout: dialTimeout, TLSClientConfig: tlsConfig, Proxy: http.ProxyFromEnvironment, ReadBufferSize: 4096, WriteBufferSize: 4096}
	ws, resp, err := d.DialContext(ctx, c.socket()+"?vsn=2.0.0", nil)
	if err != nil {
		if resp != nil {
			return nil, fmt.Errorf("%s: HTTP %s", c.URL, resp.Status)
		}
		return nil, c.unsigned(err)
	}
	_ = resp.Body.Close()
	ws.SetReadLimit(maxFrame)
	ws.SetPingHandler(func(data string) error { // a quiet server sends pings
		if err := ws.SetReadDeadline(time.Now().Add(silence)); err != nil {
			return err
		}
		return ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeDeadline))
	})
	cn := &conn{ws: ws, fmt: codec.Format{Arrays: true}}
	stop := context.AfterFunc(ctx, func() { _ = ws.Close() })
	defer stop()
	if err := cn.auth(c, msgpack); err != nil {
		return nil, errors.Join(err, ws.Close())
	}
	return cn, nil
}

func (cn *conn) auth(c *Credentials, msgpack bool) error {
	var hello struct {
		Type      string `json:"type"`
		Challenge []byte `json:"challenge"`
	}
	if err := cn.plain(&hello); err != nil {
		return err
	}
	if hello.Type != "auth_challenge" {
		return fmt.Errorf("%s begins with %.40q instead of a challenge", c.URL, hello.Type)
	}
	sig, server, err := auth.SignChallenge(c.Key, hello.Challenge, c.socket(), c.ServerID)
	if err != nil {
		return err
	}
	if server == "" {
		return auth.ErrOtherServer
	}
	cn.fmt.Msgpack = msgpack
	answer, err := json.Marshal(map[string]string{"type": "auth", "device_token": c.Token, "challenge_sig": base64.StdEncoding.EncodeToString(sig)})
	if err != nil {
		return err
	}
	if err := cn.send(answer); err != nil {
		return err
	}
	var res struct {
		Type    string `json:"type"`
		Kernel  string `json:"kernel_id"`
		Session string `json:"session_id"`
		Reason  string `json:"reason"`
	}
	if err := cn.plain(&res); err != nil {
		return err
	}
	if res.Type != "auth_ok" {
		return deny(res.Reason)
	}
	cn.Kernel, cn.Session = res.Kernel, res.Session
	return nil
}

// plain reads a frame that is not of a topic.
func (cn *conn) plain(v any) error {
	raw, err := cn.frame()
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, v)
}

// frame reads one frame as JSON.
func (cn *conn) frame() ([]byte, error) {
	if err := cn.ws.SetReadDeadline(time.Now().Add(silence)); err != nil {
		return nil, err
	}
	kind, data, err := cn.ws.ReadMessage()
	if err != nil {
		return nil, err
	}
	if kind != cn.fmt.FrameType() {
		return nil, fmt.Errorf("a frame of type %d", kind)
	}
	return cn.fmt.ToJSON(data)
}

// read reads one message.
func (cn *conn) read() (codec.Message, error) {
	raw, err := cn.frame()
	if err != nil {
		return codec.Message{}, err
	}
	return cn.fmt.Parse(raw)
}

func (cn *conn) send(json []byte) error {
	cn.write.Lock()
	defer cn.write.Unlock()
	if err := cn.ws.SetWriteDeadline(time.Now().Add(writeDeadline)); err != nil {
		return err
	}
	return cn.ws.WriteMessage(cn.fmt.FrameType(), cn.fmt.Encode(json))
}
