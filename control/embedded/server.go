package embedded

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/control/nodes"
)

// Folder is where a server keeps the log, in the data directory.
const Folder = "nats"

// Limits of a server.
const (
	startTime = 20 * time.Second
	stopTime  = 15 * time.Second
	// readyEvery is how often it is asked whether it has started, or cannot.
	readyEvery = 50 * time.Millisecond
	// maxStore is room for some ten million changes.
	maxStore  = 16 << 30
	maxMemory = 64 << 20
	// maxClients are connections to the loopback listener, which all are refused, and this node's own.
	maxClients = 256
	tlsSeconds = 5 // for a handshake: until then nothing is known of who connects
	// onePerPair has servers share a connection: there is little to say.
	onePerPair = -1
	// rarely is how many attempts to reach a server, one a second, are for one line of the log.
	rarely = 3600
)

// Config configures a [Server].
type Config struct {
	Data     *os.Root           // the data directory, whose [Folder] the server has for itself
	Node     string             // the name of this node
	Identity ed25519.PrivateKey // of the cluster, see [nodes.Node.Key]
	Route    string             // HOST:PORT where the other nodes reach this server, and where it listens
	Routes   []string           // of the other nodes
	// Removed reports whether a node was removed from the cluster; nil: none was.
	Removed func(node string) bool
	Log     zerolog.Logger
}

// Server is a NATS server of this process.
type Server struct {
	s      *server.Server
	node   string
	keys   *gatekeeper
	log    *logger
	close  sync.Once
	closed error
}

// Start starts the server of a node. It does not wait for the others.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	return start(ctx, cfg, joining)
}

// StartFirst starts the server of the node that founds a cluster. One that was founded before is
// started as it is.
func StartFirst(ctx context.Context, cfg Config) (*Server, error) {
	return start(ctx, cfg, founding)
}

func start(ctx context.Context, cfg Config, as role) (*Server, error) {
	o, err := options(cfg)
	if err != nil {
		return nil, err
	}
	if err := seed(cfg.Data, cfg.Node, as); err != nil {
		return nil, fmt.Errorf("the folder %s of the log's server: %w", filepath.Join(cfg.Data.Name(), Folder), err)
	}
	e := &Server{node: cfg.Node, keys: newGatekeeper(), log: newLogger(cfg.Log)}
	o.CustomClientAuthentication = e.keys
	if e.s, err = server.NewServer(o); err != nil {
		return nil, fmt.Errorf("the log's server: %w", err)
	}
	e.keys.system = e.s.SystemAccount
	e.s.SetLoggerV2(e.log, cfg.Log.GetLevel() <= zerolog.DebugLevel, false, false)
	e.s.Start()
	err = e.ready(ctx)
	if err == nil && only(cfg.Data) {
		err = e.begin(ctx, cfg, o)
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// begin waits until a server leads that needs nobody else for that. It votes for nobody before it has
// met another server of its cluster, so it meets one, which keeps nothing, and ends at once.
func (e *Server) begin(ctx context.Context, cfg Config, of *server.Options) (err error) {
	o := &server.Options{
		ServerName: cfg.Node + ".first", NoSigs: true, NoLog: true, Host: of.Host, Port: server.RANDOM_PORT, MaxConn: of.MaxConn,
		CustomClientAuthentication: newGatekeeper(), Routes: of.Routes[:1],
		Cluster: server.ClusterOpts{Name: of.Cluster.Name, Host: of.Host, Port: server.RANDOM_PORT, NoAdvertise: true, TLSConfig: of.Cluster.TLSConfig, TLSTimeout: tlsSeconds, PoolSize: onePerPair},
	}
	w := &Server{log: newLogger(zerolog.Nop())}
	if w.s, err = server.NewServer(o); err != nil {
		return fmt.Errorf("the log's server: %w", err)
	}
	w.s.SetLoggerV2(w.log, false, false, false)
	w.s.Start()
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := w.ready(ctx); err != nil {
		return err
	}
	look := time.NewTicker(readyEvery)
	defer look.Stop()
	over := time.NewTimer(startTime)
	defer over.Stop()
	for !e.Leads() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-over.C: // others may be needed after all
			cfg.Log.Warn().Msg("the log's server does not lead, although it is alone")
			return nil
		}
	}
	return nil
}

// ready waits until the server listens.
func (e *Server) ready(ctx context.Context) error {
	for until := time.Now().Add(startTime); time.Now().Before(until); {
		select {
		case err := <-e.log.fatal:
			return fmt.Errorf("the log's server: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		if e.s.ReadyForConnections(readyEvery) {
			return nil
		}
	}
	return fmt.Errorf("the log's server did not start within %v", startTime)
}

// options are those of a node's server.
func options(cfg Config) (*server.Options, error) {
	host, port, err := nodes.SplitRoute(cfg.Route)
	if err != nil {
		return nil, err
	}
	secure, err := routeTLS(cfg)
	if err != nil {
		return nil, err
	}
	o := &server.Options{
		ServerName: cfg.Node, NoSigs: true, DisableJetStreamBanner: true,
		Host: "127.0.0.1", Port: server.RANDOM_PORT, MaxConn: maxClients,
		JetStream: true, StoreDir: filepath.Join(cfg.Data.Name(), Folder), SyncAlways: true,
		JetStreamMaxMemory: maxMemory, JetStreamMaxStore: maxStore, ReconnectErrorReports: rarely,
		Cluster: server.ClusterOpts{Name: clusterName(cfg.Identity), Host: host, Port: port, Advertise: cfg.Route, NoAdvertise: true, TLSConfig: secure, TLSTimeout: tlsSeconds, PoolSize: onePerPair},
	}
	for _, r := range append([]string{cfg.Route}, cfg.Routes...) { // itself, too: a server without a route belongs to no cluster
		if _, _, err := nodes.SplitRoute(r); err != nil {
			return nil, err
		}
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats-route", Host: r})
	}
	return o, nil
}

// clusterName is the name of a cluster: servers of another one are refused.
func clusterName(identity ed25519.PrivateKey) string {
	sum := sha256.Sum256(append([]byte("yaya-cluster-name-v1\n"), identity.Public().(ed25519.PublicKey)...))
	return "yaya-" + hex.EncodeToString(sum[:8])
}

// Options are those of a connection to the server, which does not leave this process.
func (e *Server) Options() []nats.Option { return e.as(logUser) }

func (e *Server) as(user string) []nats.Option {
	return []nats.Option{nats.InProcessServer(e.s), nats.UserInfo(user, e.keys.passwords[user])}
}

// Close ends the server, and waits for it.
func (e *Server) Close() error {
	e.close.Do(func() {
		e.closed = within(stopTime, func() {
			e.s.Shutdown()
			e.s.WaitForShutdown()
		})
	})
	return e.closed
}

// within waits for stop, but not longer than a time: a server that hangs is left to the end of the
// process.
func within(d time.Duration, stop func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		stop()
	}()
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-done:
		return nil
	case <-late.C:
		return fmt.Errorf("the log's server did not end within %v", d)
	}
}
