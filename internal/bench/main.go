//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"github.com/yaya-ai/yaya/internal/bench/load"
	"github.com/yaya-ai/yaya/internal/freeport"
)

// Parameters of the relay's measurement; flags narrow them down.
var (
	kinds     = "http,stdio"
	inFlights = "1,8,64"
	sizes     = "64,4096,262144"
)

func main() {
	mode := flag.String("fixture", "", "be the upstream server (http, stdio), a proxy before one (tcp, reverse, relay) or a flood")
	to := flag.String("to", "", "where a proxy goes, or stdio")
	secure := flag.String("tls", "", "of a fixture: serve TLS with this protocol (http/1.1 or h2)")
	bin := flag.String("yaya", "bin/yaya", "the binary to measure")
	rounds := flag.Int("rounds", 3, "alternating rounds; the median counts")
	per := flag.Duration("time", time.Second, "time of one round")
	only := flag.String("only", "", "measure only: relay, https, start, telemetry or fair")
	flag.StringVar(&kinds, "upstream", kinds, "upstreams of the relay")
	flag.StringVar(&inFlights, "in-flight", inFlights, "calls in flight")
	flag.StringVar(&sizes, "size", sizes, "bytes of the argument")
	out := flag.String("json", "", "write the figures to this file")
	compare := flag.String("compare", "", "compare with the figures of this file, such as internal/bench/baseline.json")
	flag.Parse()
	var err error
	var protocols []string
	if *secure != "" {
		protocols = []string{*secure}
	}
	switch *mode {
	case "http":
		err = fixtureHTTP(protocols...)
	case "stdio":
		err = fixtureStdio()
	case "flood":
		err = fixtureFlood(*to)
	case "tcp", "reverse":
		err = fixtureProxy(*mode, *to, protocols...)
	case "relay":
		err = fixtureRelay(*to)
	default:
		err = bench(*bin, *rounds, *per, *only, *out, *compare)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(bin string, rounds int, per time.Duration, only, out, compare string) error {
	var base results
	if compare != "" { // before minutes of measuring
		var err error
		if base, err = readResults(compare); err != nil {
			return err
		}
	}
	var got results

	dir, err := os.MkdirTemp("", "yb")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	fmt.Printf("machine: %d CPUs, %s, %s/%s; %s\n\n", runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, strings.Join(os.Args, " "))
	for _, part := range []struct {
		name    string
		measure func() error
	}{
		{"relay", func() error { return relay(bin, dir, rounds, per, &got) }},
		{"https", func() error { return overTLS(bin, dir, rounds, per, &got) }},
		{"telemetry", func() error { return observed(bin, dir, rounds, per) }},
		{"fair", func() error { return fairness(bin, dir, rounds, per) }},
		{"start", func() error { return startUp(bin, dir, rounds, &got) }},
	} {
		if only != "" && only != part.name {
			continue
		}
		if err := part.measure(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	if compare != "" {
		fmt.Print(got.compared(base))
	}
	if out != "" {
		return got.write(out)
	}
	return nil
}

// daemon is a running yaya.
type daemon struct {
	cmd  *exec.Cmd
	addr string
	url  string // with scheme
	http *http.Client
}

// start runs yaya with servers and returns how long it took to be ready.
func start(bin, dir string, servers map[string]any, env ...string) (*daemon, time.Duration, error) {
	return startWith(bin, dir, servers, nil, env...)
}

// startWith runs yaya with further flags; with a certificate it is reached over TLS alone.
func startWith(bin, dir string, servers map[string]any, flags []string, env ...string) (*daemon, time.Duration, error) {
	port, err := freeport.Pick(context.Background())
	if err != nil {
		return nil, 0, err
	}
	addr := fmt.Sprint("127.0.0.1:", port)
	config := filepath.Join(dir, "mcp.json")
	data, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		return nil, 0, err
	}
	if err := os.WriteFile(config, data, 0o600); err != nil {
		return nil, 0, err
	}
	d := &daemon{addr: addr, url: "http://" + addr, http: http.DefaultClient}
	if slices.Contains(flags, "--tls-cert") {
		trust, err := toProxy()
		if err != nil {
			return nil, 0, err
		}
		d.url, d.http = "https://"+addr, &http.Client{Transport: trust}
	}
	cmd := exec.Command(bin, append([]string{"serve", "--listen", addr, "--data-dir", filepath.Join(dir, "d"), "--mcp-config", config}, flags...)...) //nolint:noctx // stopped by stop
	cmd.Stderr, cmd.Env = os.Stderr, append(os.Environ(), env...)
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, 0, err
	}
	d.cmd = cmd
	for time.Since(begun) < 30*time.Second {
		resp, err := d.http.Get(d.url + "/health?ready=1") //nolint:noctx // loopback
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return d, time.Since(begun), nil
			}
		}
		time.Sleep(time.Millisecond)
	}
	d.stop()
	return nil, 0, fmt.Errorf("yaya is not ready after 30 s")
}

func (d *daemon) stop() {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	_ = d.cmd.Wait()
}

// cpu returns the processor time that yaya has used, 0 if nothing says it.
func (d *daemon) cpu() time.Duration {
	p, err := procfs.NewProc(d.cmd.Process.Pid)
	if err != nil {
		return 0
	}
	st, err := p.Stat()
	if err != nil {
		return 0
	}
	return time.Duration(st.CPUTime() * float64(time.Second))
}

// memory returns yaya's resident memory in MB, and how much of it is anonymous; 0 if nothing says it.
func (d *daemon) memory() (rss, anonymous float64) {
	p, err := procfs.NewProc(d.cmd.Process.Pid)
	if err != nil {
		return 0, 0
	}
	st, err := p.NewStatus()
	if err != nil {
		return 0, 0
	}
	return float64(st.VmRSS) / (1 << 20), float64(st.RssAnon) / (1 << 20)
}

var mallocs = regexp.MustCompile(`(?m)^go_memstats_mallocs_total (\S+)`)

// allocs returns how many objects yaya has allocated.
func (d *daemon) allocs() float64 {
	resp, err := d.http.Get(d.url + "/metrics") //nolint:noctx // loopback
	if err != nil {
		return 0
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(resp.Body)
	m := mallocs.FindSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseFloat(string(m[1]), 64)
	return n
}

func self() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// spawned are the fixtures that run.
var spawned []*exec.Cmd

func endSpawned() {
	for _, cmd := range spawned {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// spawn runs a fixture that prints its address, until ctx ends.
func spawn(ctx context.Context, args ...string) (addr string, err error) {
	cmd := exec.CommandContext(ctx, self(), args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	spawned = append(spawned, cmd)
	return strings.TrimSpace(line), err
}

func startUp(bin, dir string, rounds int, into *results) error {
	fmt.Println("| start to ready | ms | idle RSS MB | of it anonymous |")
	fmt.Println("|---|---|---|---|")
	for _, n := range []int{0, 20} {
		servers := map[string]any{}
		for i := range n {
			servers[fmt.Sprint("s", i)] = map[string]any{"command": self(), "args": []string{"-fixture", "stdio"}}
		}
		var took, rss, anon []float64
		for range max(rounds, 3) {
			d, t, err := start(bin, dir, servers)
			if err != nil {
				return err
			}
			time.Sleep(500 * time.Millisecond) // idle
			all, own := d.memory()
			took, rss, anon = append(took, float64(t.Microseconds())/1000), append(rss, all), append(anon, own)
			d.stop()
		}
		r := startRow{Servers: n, Ready: load.Median(took), RSS: load.Median(rss), Anonymous: load.Median(anon)}
		into.Start = append(into.Start, r)
		fmt.Printf("| %d servers | %.0f | %.1f | %.1f |\n", n, r.Ready, r.RSS, r.Anonymous)
	}
	return nil
}
