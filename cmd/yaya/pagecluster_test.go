package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/gateway/client"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// The page of a node shows the log and the nodes, and follows both: a node joins with the command
// that the page shows, another one is killed and removed, and the log loses its majority.
func TestPageCluster(t *testing.T) {
	t.Parallel()
	needPeers(t)
	chromium(t)
	n := newNATS(t)
	all, _ := newCluster(t, n)
	north, south, west := all[0], all[1], all[2]
	watch := client.Start(client.Options{Credentials: south.enrollsWith(north.box, "tablet")})
	defer watch.Close()
	for i, b := range all {
		b.must("run", "--session", "of-"+nodeNames[i], "hello")
	}
	eventually.True(t, "north knows that the tablet is connected to south", func() bool {
		for _, m := range north.cluster().Members {
			if m.Name == "south" && len(m.Devices) == 1 && m.Devices[0] == "tablet" {
				return true
			}
		}
		return false
	})
	north.scenario("cluster", nil, map[string]func(string) (any, error){
		"run": func(command string) (any, error) {
			args := strings.Fields(command)
			if len(args) < 2 || args[0] != "yaya" {
				return nil, fmt.Errorf("%q is not a command of yaya", command)
			}
			out, err := north.run(args[1:]...)
			if err != nil {
				err = fmt.Errorf("%s: %w: %s", command, err, out)
			}
			return out, err
		},
		"join": func(invitation string) (any, error) {
			east := newBox(t)
			if out, err := east.run("cluster", "join", invitation, "--name", "east"); err != nil {
				return nil, fmt.Errorf("east joins: %w: %s", err, out)
			}
			east.serve()
			return nil, nil
		},
		"kill": func(string) (any, error) {
			west.kill()
			return nil, nil
		},
		"lose": func(string) (any, error) {
			n.stop(1)
			n.stop(2)
			return nil, nil
		},
		"regain": func(string) (any, error) {
			n.start(1)
			n.start(2)
			return nil, nil
		},
	})
}

// The page of a yaya that is alone says what a cluster is for, and how to begin one.
func TestPageAlone(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.serve()
	b.scenario("alone", nil, nil)
}
