// Command nats runs three NATS servers with JetStream on this machine, as a team would run them on
// three. It prints their URL, and ends with its standard input. A line "stop N" or "start N" on its
// input stops or starts one of them.
package main

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: nats FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "nats:", err)
		os.Exit(1)
	}
}

// servers are the three.
type servers struct {
	options [3]*server.Options
	running [3]*server.Server
}

func run(folder string) error {
	var s servers
	var routes []*url.URL
	var clients []string
	for i := range s.options {
		client, cluster, err := freePorts()
		if err != nil {
			return err
		}
		s.options[i] = &server.Options{
			ServerName: fmt.Sprint("nats-", i), Host: "127.0.0.1", Port: client, NoSigs: true, JetStream: true, StoreDir: filepath.Join(folder, fmt.Sprint(i)),
			SyncAlways: true, Cluster: server.ClusterOpts{Name: "example", Host: "127.0.0.1", Port: cluster},
		}
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprint("127.0.0.1:", cluster)})
		clients = append(clients, fmt.Sprint("nats://127.0.0.1:", client))
	}
	for i := range s.options {
		s.options[i].Routes = routes
		if err := s.start(i); err != nil {
			return err
		}
		defer s.stop(i)
	}
	fmt.Println(strings.Join(clients, ","))
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var word string
		var i int
		if _, err := fmt.Sscan(in.Text(), &word, &i); err != nil || i < 0 || i >= len(s.options) {
			return fmt.Errorf("%q is neither stop N nor start N", in.Text())
		}
		s.stop(i)
		if word == "start" {
			if err := s.start(i); err != nil {
				return err
			}
		}
	}
	return in.Err()
}

func (s *servers) start(i int) error {
	n, err := server.NewServer(s.options[i].Clone())
	if err != nil {
		return err
	}
	s.running[i] = n
	n.Start()
	if !n.ReadyForConnections(30 * time.Second) {
		return fmt.Errorf("server %d is not ready", i)
	}
	return nil
}

func (s *servers) stop(i int) {
	if s.running[i] != nil {
		s.running[i].Shutdown()
		s.running[i].WaitForShutdown()
		s.running[i] = nil
	}
}

// freePorts returns two ports that nobody listens on.
func freePorts() (a, b int, err error) {
	var at [2]int
	for i := range at {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // an example
		if err != nil {
			return 0, 0, err
		}
		defer func() { _ = l.Close() }()
		at[i] = l.Addr().(*net.TCPAddr).Port
	}
	return at[0], at[1], nil
}
