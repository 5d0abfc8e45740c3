package fastpath_test

import (
	"net"
	"time"
)

const (
	headTimeout = 5 * time.Second
	idleTimeout = 120 * time.Second
)

// memory is a recording as a [net.Conn].
type memory struct{ *recording }

func (m *memory) Close() error {
	m.once.Do(func() { close(m.gone) })
	return nil
}

func (m *memory) LocalAddr() net.Addr              { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (m *memory) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }
func (m *memory) SetDeadline(time.Time) error      { return nil }
func (m *memory) SetReadDeadline(time.Time) error  { return nil }
func (m *memory) SetWriteDeadline(time.Time) error { return nil }
