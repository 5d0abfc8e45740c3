package jetstream

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/control/nodes"
)

// Times of a connection.
const (
	dialTime    = 2 * time.Second
	redialAfter = 500 * time.Millisecond
	pingEvery   = 2 * time.Second // a server that is silent for two of them is left for another one
)

// Connect connects to one of the servers, and goes on trying until the connection is closed. It
// does not wait: what needs a server fails until there is one. Options come behind those of all
// connections.
func Connect(s nodes.Servers, name string, log zerolog.Logger, more ...nats.Option) (*nats.Conn, error) {
	o := []nats.Option{
		nats.Name("yaya " + name), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(redialAfter), nats.Timeout(dialTime),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(2), nats.ReconnectBufSize(-1), // what cannot be sent now is not sent later
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // not closed by this node
				log.Warn().Err(err).Msg("the connection to the NATS server was lost")
			}
		}),
		nats.ReconnectHandler(func(c *nats.Conn) {
			log.Info().Str("server", c.ConnectedServerName()).Msg("connected to a NATS server")
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Warn().Err(err).Msg("NATS") }),
	}
	if s.Credentials != "" {
		o = append(o, nats.UserCredentialBytes([]byte(s.Credentials)))
	}
	if s.CA != "" {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(s.CA)) {
			return nil, errors.New("the certificate of the authority is not PEM")
		}
		o = append(o, nats.Secure(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}))
	}
	c, err := nats.Connect(s.URL, append(o, more...)...)
	if err != nil {
		return nil, fmt.Errorf("the NATS servers: %w", err)
	}
	return c, nil
}
