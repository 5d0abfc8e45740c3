package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"
)

// maxHello bounds the first message of TLS, which may be several records.
const maxHello = 16 << 10

// Protocols of tunnels.
type carried int

const (
	isTLS carried = iota
	isHTTP
	isOther
)

// notTLS is the reason why a connection to port 443 is refused.
const notTLS = "what was sent is not TLS"

var errSeen = errors.New("seen")

// inspect looks at the first bytes of a tunnel and leaves them to be read. TLS has to
// name the host that the tunnel was opened to, and ports of the web carry nothing
// else; a port that was allowed by its number may.
func (p *proxy) inspect(ctx context.Context, in *bufio.Reader, host string, port int) (carried, error) {
	first, err := in.Peek(1)
	if err != nil {
		return isOther, err
	}
	if first[0] != 0x16 {
		switch port {
		case 443:
			return isOther, p.refuse(ctx, host, port, notTLS, "")
		case 80:
			return isHTTP, nil
		}
		return isOther, nil
	}
	name, err := serverName(in)
	if err != nil {
		return isTLS, p.refuse(ctx, host, port, err.Error(), "")
	}
	if _, err := netip.ParseAddr(host); err == nil && name == "" {
		return isTLS, nil // addresses have no names in TLS
	}
	if strings.TrimSuffix(strings.ToLower(name), ".") != host {
		return isTLS, p.refuse(ctx, host, port, fmt.Sprintf("TLS in the tunnel was for %.100q", name), "")
	}
	return isTLS, nil
}

// serverName reads the name in a ClientHello without consuming it.
func serverName(in *bufio.Reader) (string, error) {
	for size := 512; ; size *= 2 {
		size = min(max(size, in.Buffered()), maxHello)
		data, err := in.Peek(min(size, max(in.Buffered(), 1)))
		if err != nil {
			return "", fmt.Errorf("the first message of TLS: %w", err)
		}
		name, whole, err := helloName(data)
		if whole || err != nil {
			return name, err
		}
		if len(data) == maxHello {
			return "", errors.New("the first message of TLS is too long")
		}
		if _, err := in.Peek(len(data) + 1); err != nil { // wait for more
			return "", fmt.Errorf("the first message of TLS: %w", err)
		}
	}
}

// helloName lets crypto/tls read what there is. whole is false when that is a part.
func helloName(data []byte) (name string, whole bool, err error) {
	source := &memoryConn{Reader: bytes.NewReader(data)}
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name, whole = h.ServerName, true
		return nil, errSeen
	}}
	err = tls.Server(source, config).Handshake() //nolint:noctx // in memory
	switch {
	case whole:
		return name, true, nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "", false, nil
	default:
		return "", false, errors.New("what was sent looks like TLS, and is not")
	}
}

// memoryConn is a connection whose peer has sent some bytes and listens to nothing.
type memoryConn struct{ *bytes.Reader }

func (*memoryConn) Write(p []byte) (int, error)      { return len(p), nil }
func (*memoryConn) WriteTo(io.Writer) (int64, error) { return 0, io.EOF }
func (*memoryConn) Close() error                     { return nil }
func (*memoryConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*memoryConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (*memoryConn) SetDeadline(time.Time) error      { return nil }
func (*memoryConn) SetReadDeadline(time.Time) error  { return nil }
func (*memoryConn) SetWriteDeadline(time.Time) error { return nil }
