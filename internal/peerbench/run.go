//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/freeport"
)

// keeper owns an upstream over HTTP: a process that it starts again, at the same
// address, when it ends.
type keeper struct {
	addr string
	end  context.CancelFunc
	done sync.WaitGroup
}

// keep starts an upstream and returns when it listens.
func keep(ctx context.Context, self string) (*keeper, error) {
	ctx, end := context.WithCancel(ctx)
	k := &keeper{end: end}
	cmd, addr, err := spawn(ctx, self, "127.0.0.1:0")
	if err != nil {
		end()
		return nil, err
	}
	k.addr = addr
	k.done.Go(func() {
		for ctx.Err() == nil {
			_ = cmd.Wait() // its tool "crash" ends it
			for ctx.Err() == nil {
				if cmd, _, err = spawn(ctx, self, k.addr); err == nil {
					break
				}
				select {
				case <-ctx.Done():
				case <-time.After(50 * time.Millisecond):
				}
			}
		}
		if err == nil {
			_ = cmd.Wait()
		}
	})
	return k, nil
}

// spawn runs an upstream, until ctx ends, and returns its address.
func spawn(ctx context.Context, self, at string) (*exec.Cmd, string, error) {
	cmd := exec.CommandContext(ctx, self, "-upstream", at)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("the upstream does not start: %w", err), cmd.Wait())
	}
	return cmd, strings.TrimSpace(line), nil
}

func (k *keeper) stop() {
	k.end()
	k.done.Wait()
}

// runner runs peers, one at a time.
type runner struct {
	self string
	dir  string
	in   *installer
}

// running is a peer that answers.
type running struct {
	group *group
	up    *keeper
	to    endpoint
	took  time.Duration // from its start to its first answered call
}

// startLimit is the time that a peer has to answer its first call.
const startLimit = 60 * time.Second

// start runs a peer before an upstream of a kind and returns when it has
// answered a call. It must listen on loopback alone.
func (r *runner) start(ctx context.Context, p *peer, kind string) (*running, error) {
	dir, err := os.MkdirTemp(r.dir, "peer")
	if err != nil {
		return nil, err
	}
	port, err := freeport.Pick(ctx)
	if err != nil {
		return nil, err
	}
	up, err := keep(ctx, r.self)
	if err != nil {
		return nil, err
	}
	l, err := p.launch(place{bin: r.in.folder(p), node: r.in.node, dir: dir, port: port, kind: kind, url: "http://" + up.addr + "/mcp", self: r.self})
	if err != nil {
		up.stop()
		return nil, err
	}
	l.to.base = fmt.Sprintf("http://127.0.0.1:%d", port)
	begun := time.Now()
	g, err := startGroup(dir, l.argv, l.env)
	if err != nil {
		up.stop()
		return nil, err
	}
	run := &running{group: g, up: up, to: l.to}
	if err = run.answers(ctx, l.setup); err == nil {
		run.took = time.Since(begun)
		err = run.isLocal()
	}
	if err != nil {
		return nil, errors.Join(err, run.stop())
	}
	return run, nil
}

func (r *running) stop() error {
	err := r.group.stop()
	r.up.stop()
	return err
}

// answers waits until a call is answered.
func (r *running) answers(ctx context.Context, setup func(context.Context, string) error) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	var last error
	for {
		if err := r.isLocal(); err != nil {
			return err
		}
		if setup != nil {
			if last = setup(ctx, r.to.base); last == nil {
				setup = nil
			}
		}
		if setup == nil {
			if last = firstCall(ctx, r.to); last == nil {
				return nil
			}
		}
		select {
		case <-r.group.ended:
			err := r.group.err
			if err == nil {
				err = errors.New("exit status 0")
			}
			return fmt.Errorf("it ended: %w: %s", err, r.group.said())
		case <-ctx.Done():
			return fmt.Errorf("it answered no call in %v: %w", startLimit, last)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func firstCall(ctx context.Context, to endpoint) error {
	s := &subject{to: to}
	if err := s.open(ctx); err != nil {
		return err
	}
	defer s.c.close()
	r, err := s.call(ctx, s.c, "echo", map[string]any{"text": "hi"}, nil)
	if err != nil {
		return err
	}
	return got("the first call", r.text(), "hi")
}

// isLocal fails if the peer listens elsewhere than on loopback.
func (r *running) isLocal() error {
	members, err := r.group.members()
	if err != nil {
		return err
	}
	where, err := elsewhere("/proc", members)
	if err == nil && len(where) > 0 {
		err = fmt.Errorf("it listens on %s and was ended: only loopback is allowed", strings.Join(where, ", "))
	}
	return err
}

// usage adds up the processes of the peer, without those of the upstream.
func (r *running) usage(self string) (usage, error) {
	members, err := r.group.members()
	if err != nil {
		return usage{}, err
	}
	return used("/proc", members, self), nil
}
