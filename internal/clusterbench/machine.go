//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/yaya-ai/yaya/internal/freeport"
)

// process is one that the bench has started, and that it waits for.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// machine is a yaya and a NATS server.
type machine struct {
	i          int
	g          *ground
	name       string
	bin, self  string
	addr       string // of yaya
	natsHost   string
	clientPort string
	routePort  string
	yaya, nats *process
	gate       *process
	http       *http.Client
	local      *http.Client // over the socket
}

var names = [3]string{"north", "south", "west"}

// openMachine makes the folders of a machine, which runs nothing yet.
func openMachine(g *ground, i int, bin string) (*machine, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if bin, err = filepath.Abs(bin); err != nil {
		return nil, err
	}
	m := &machine{i: i, g: g, name: names[i], bin: bin, self: self, addr: "127.0.0.1:7420", natsHost: fmt.Sprint("10.77.0.1", i), clientPort: "4222", routePort: "6222"}
	if !g.isolated {
		var ports [3]string
		for n := range ports {
			port, err := freeport.Pick(context.Background())
			if err != nil {
				return nil, err
			}
			ports[n] = strconv.Itoa(port)
		}
		m.addr, m.natsHost, m.clientPort, m.routePort = "127.0.0.1:"+ports[0], "127.0.0.1", ports[1], ports[2]
	}
	m.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		if g.isolated {
			return new(net.Dialer).DialContext(ctx, "unix", m.socket())
		}
		return dialLoopback(ctx, m.addr)
	}}}
	m.local = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4, DialContext: m.overSocket}}
	config := map[string]any{"mcpServers": map[string]any{"tool": map[string]any{"command": self, "args": []string{"tool"}}}}
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{"c", "nats"} {
		if err := os.MkdirAll(filepath.Join(m.folder(), dir), 0o700); err != nil {
			return nil, err
		}
	}
	return m, os.WriteFile(filepath.Join(m.folder(), "c", "mcp.json"), raw, 0o600)
}

func (m *machine) folder() string { return m.g.folder(m.i) }

// socket is that of the gate, which is not on the machine's disk.
func (m *machine) socket() string { return filepath.Join(m.g.dir, fmt.Sprint("gate", m.i)) }

func (m *machine) logFile(of string) string {
	return filepath.Join(m.g.dir, m.name+"-"+of+".log")
}

// command is a program of this machine.
func (m *machine) command(ctx context.Context, bin string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, bin, args...) //nolint:gosec // yaya, or this program
	cmd.Env = append(os.Environ(), "HOME="+m.folder(), clockEnv+"="+m.clockFile())
	cmd.Dir = m.folder()
	return cmd
}

// run starts a program, and returns it at once.
func (m *machine) run(of, bin string, args ...string) (*process, error) {
	log, err := os.OpenFile(m.logFile(of), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &process{cmd: m.command(context.Background(), bin, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := m.g.on(m.i, p.cmd.Start); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // how it ended is in its log
	}()
	return p, nil
}

func (p *process) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// kill ends a process at once, whether it runs or is stopped.
func (p *process) kill() error {
	if p == nil {
		return nil
	}
	err := p.signal(syscall.SIGKILL)
	<-p.done
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

func (m *machine) flags(args ...string) []string {
	return append(args, "--data-dir", filepath.Join(m.folder(), "d"), "--config-dir", filepath.Join(m.folder(), "c"))
}

// do runs a command of yaya on the machine.
func (m *machine) do(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := m.command(ctx, m.bin, m.flags(args...)...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := m.g.on(m.i, cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return "", fmt.Errorf("yaya %s on %s: %w: %s%s", args[0], m.name, err, out.String(), problems.String())
	}
	return out.String(), nil
}

func (m *machine) startYaya() (err error) {
	m.yaya, err = m.run("yaya", m.bin, m.flags("serve", "--listen", m.addr, "--mcp-config", filepath.Join(m.folder(), "c", "mcp.json"))...)
	return err
}

func (m *machine) startNATS(routes string) (err error) {
	m.nats, err = m.run("nats", m.self, "nats", "nats-"+m.name, m.natsHost, m.clientPort, m.routePort, routes, filepath.Join(m.folder(), "nats"))
	return err
}

func (m *machine) startGate() (err error) {
	if m.g.isolated {
		m.gate, err = m.run("gate", m.self, "gate", m.socket(), m.addr)
	}
	return err
}

// answers waits until yaya answers.
func (m *machine) answers(ctx context.Context) error {
	return until(ctx, m.name+" answers", func() bool {
		status, _, err := m.ask(ctx, http.MethodGet, "/health", "", nil)
		return err == nil && status == http.StatusOK
	})
}

// until waits for a condition.
func until(ctx context.Context, what string, ok func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		if ok() {
			tick.Stop()
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return fmt.Errorf("%s: not within a minute: %w", what, ctx.Err())
		}
	}
}

// maxAnswer is how much of an answer is read.
const maxAnswer = 32 << 20

// answer is a response of yaya.
type answer struct {
	status  int
	body    []byte
	session string    // of MCP
	date    time.Time // zero if it has none
}

// ask sends a request to a machine's yaya: with a token, or as its user.
func (m *machine) ask(ctx context.Context, method, path, token string, body any) (int, []byte, error) {
	a, err := m.send(ctx, method, path, token, body)
	return a.status, a.body, err
}

// send is ask with names and values of headers.
func (m *machine) send(ctx context.Context, method, path, token string, body any, header ...string) (answer, error) {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return answer{}, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+m.addr+path, bytes.NewReader(raw))
	if err != nil {
		return answer{}, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := m.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	date, _ := http.ParseTime(resp.Header.Get("Date")) // of the node's clock
	return answer{resp.StatusCode, out, resp.Header.Get("Mcp-Session-Id"), date}, err
}

// overSocket connects to a yaya's socket, whose other end is always its user.
func (m *machine) overSocket(ctx context.Context, _, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(m.folder(), "d", "yaya.sock"))
}

func (m *machine) close() error {
	err := errors.Join(m.yaya.kill(), m.nats.kill(), m.gate.kill())
	m.http.CloseIdleConnections()
	m.local.CloseIdleConnections()
	return err
}
