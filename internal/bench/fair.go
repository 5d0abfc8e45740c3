//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/yaya-ai/yaya/internal/bench/load"
)

// The floods: so many calls in flight of one client, and so many connections that another one
// opens sessions on.
const (
	floodCalls    = 1000
	floodSessions = 4
)

// fairness measures the calls of a client while it is alone, and while one client has a thousand
// calls in flight to the same server and another one floods yaya with initialize. Rounds alternate,
// and no call of the measured client may fail.
func fairness(bin, dir string, rounds int, per time.Duration) error {
	d, _, err := start(bin, dir, map[string]any{"stdio": map[string]any{"command": self(), "args": []string{"-fixture", "stdio"}}})
	if err != nil {
		return err
	}
	defer d.stop()
	t := &target{addr: d.addr, path: "/mcp", tool: "stdio__echo", name: "third"}
	if err := t.open(); err != nil {
		return err
	}
	fmt.Printf("Fairness: calls of a client over stdio, 64 B, one at a time, alone and beside a client with %d calls of %v in flight to the same server and one that opens sessions on %d connections.\n\n", floodCalls, slow, floodSessions)
	fmt.Println("| round | alone p50 ms | p99 | beside the floods p50 | p99 | p99 × | calls of the flood | sessions opened |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	var ratios []float64
	for round := range rounds + 1 { // the first warms up
		alone, err := t.run(1, 64, per)
		if err != nil {
			return err
		}
		f, err := startFlood(d.addr)
		if err != nil {
			return err
		}
		beside, err := t.run(1, 64, per)
		did := f.stop()
		if err != nil {
			return fmt.Errorf("beside the floods: %w", err)
		}
		if round == 0 {
			continue
		}
		ratio := float64(beside.quantile(.99)) / float64(alone.quantile(.99))
		ratios = append(ratios, ratio)
		fmt.Printf("| %d | %.2f | %.2f | %.2f | %.2f | %.2f | %s |\n", round, ms(alone.quantile(.5)), ms(alone.quantile(.99)), ms(beside.quantile(.5)), ms(beside.quantile(.99)), ratio, did)
	}
	fmt.Printf("\np99 beside the floods: %.2f × in the median, %.2f × in the best round\n\n", load.Median(ratios), slices.Min(ratios))
	return nil
}

// flood is the process of both floods.
type flood struct {
	cmd *exec.Cmd
	in  io.Closer
	out *bufio.Reader
}

// startFlood returns when all calls are in flight.
func startFlood(to string) (*flood, error) {
	cmd := exec.CommandContext(context.Background(), self(), "-fixture", "flood", "-to", to)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	f := &flood{cmd, in, bufio.NewReader(out)}
	if _, err := f.out.ReadString('\n'); err != nil {
		f.stop()
		return nil, fmt.Errorf("the floods did not start: %w", err)
	}
	return f, nil
}

// stop ends the floods and returns what they did.
func (f *flood) stop() string {
	_ = f.in.Close()
	line, _ := f.out.ReadString('\n')
	_ = f.cmd.Wait()
	return strings.TrimSpace(line)
}

// fixtureFlood floods until its input ends.
func fixtureFlood(to string) error {
	// The measurement leaves out the processor time of the floods' own clients.
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19); err != nil {
		return err
	}
	t := &target{addr: to, path: "/mcp", name: "flood"}
	if err := t.open(); err != nil {
		return err
	}
	var sent, opened atomic.Int64
	failed := make(chan error, 1)
	fail := func(err error) {
		select {
		case failed <- err:
		default:
		}
	}
	for i := range floodCalls {
		go func() {
			c, err := t.dial()
			if err == nil { // connecting is not measured
				_, err = c.Post(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"p%d","method":"ping"}`, i), t.session)
			}
			for n := 0; err == nil; n++ {
				sent.Add(1)
				body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"stdio__wait","arguments":{"text":""}}}`, i*1_000_000+n)
				_, err = c.Post(body, t.session)
			}
			fail(err)
		}()
	}
	for sent.Load() < floodCalls {
		time.Sleep(time.Millisecond)
	}
	for range floodSessions {
		go func() {
			greedy := &target{addr: to, path: "/mcp", name: "opener"}
			c, err := greedy.dial()
			for err == nil {
				_, err = c.Post([]byte(greedy.hello()), "")
				opened.Add(1)
			}
			fail(err)
		}()
	}
	fmt.Println("flooding")
	calls, sessions := sent.Load(), opened.Load()
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	select {
	case err := <-failed:
		return errors.Join(errors.New("a flood was cut off"), err)
	case <-ended:
		fmt.Printf("%d | %d\n", sent.Load()-calls, opened.Load()-sessions)
		return nil
	}
}
