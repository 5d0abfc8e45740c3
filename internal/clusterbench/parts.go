//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/yaya-ai/yaya/internal/echoserver"
)

// serveNATS runs one NATS server: nats NAME HOST CLIENTPORT CLUSTERPORT ROUTES FOLDER.
func serveNATS(args []string) error {
	if len(args) != 6 {
		return errors.New("usage: nats NAME HOST CLIENTPORT CLUSTERPORT ROUTES FOLDER")
	}
	var client, cluster int
	if _, err := fmt.Sscan(args[2]+" "+args[3], &client, &cluster); err != nil {
		return err
	}
	var routes []*url.URL
	for r := range strings.SplitSeq(args[4], ",") {
		routes = append(routes, &url.URL{Scheme: "nats", Host: r})
	}
	s, err := server.NewServer(&server.Options{
		ServerName: args[0], Host: args[1], Port: client, JetStream: true, StoreDir: args[5], SyncAlways: true, NoSigs: true, JetStreamMaxStore: 48 << 20, JetStreamMaxMemory: 16 << 20,
		Routes: routes, Cluster: server.ClusterOpts{Name: "bench", Host: args[1], Port: cluster},
	})
	if err != nil {
		return err
	}
	s.SetLogger(natsLog{}, false, false)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s.Start()
	<-ctx.Done()
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}

// natsLog writes what a server notes to standard error.
type natsLog struct{}

func (natsLog) write(format string, v ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format(time.StampMilli)+" "+format+"\n", v...)
}
func (l natsLog) Noticef(format string, v ...any) { l.write(format, v...) }
func (l natsLog) Warnf(format string, v ...any)   { l.write("warning: "+format, v...) }
func (l natsLog) Fatalf(format string, v ...any)  { l.write("fatal: "+format, v...) }
func (l natsLog) Errorf(format string, v ...any)  { l.write("error: "+format, v...) }
func (natsLog) Debugf(string, ...any)             {}
func (natsLog) Tracef(string, ...any)             {}

// serveGate lets the bench reach the yaya of a machine, whose network it is not in:
// gate SOCKET ADDRESS. yaya takes only a process of its own namespaces for its user.
func serveGate(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: gate SOCKET ADDRESS")
	}
	l, err := net.Listen("unix", args[0])
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() { // the process ends with the machine, and its connections with it
			defer c.Close()
			to, err := dialLoopback(context.Background(), args[1])
			if err != nil {
				return
			}
			defer to.Close()
			var both sync.WaitGroup
			both.Go(func() { pass(to, c) })
			both.Go(func() { pass(c, to) })
			both.Wait()
		}()
	}
}

// pass copies one direction, and ends both: HTTP needs no half-open connections.
func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	to.Close()
	from.Close()
}

// dialLoopback connects from an address of its own: yaya counts refusals by address, and the
// devices of a cluster have different ones.
func dialLoopback(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: 2 * time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, byte(1+rand.IntN(250)), byte(rand.IntN(250)), byte(1+rand.IntN(250)))}}
	return d.DialContext(ctx, "tcp", addr)
}

// serveTool is the MCP server of a machine.
func serveTool([]string) error { return echoserver.Serve(os.Stdin, os.Stdout) }
