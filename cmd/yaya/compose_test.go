package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.yaml.in/yaml/v3"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/freeport"
)

// composeFile has the parts of deploy/compose/compose.yaml that these tests read.
type composeFile struct {
	Services map[string]struct {
		Image       string
		Build       struct{ Context, Dockerfile string }
		User        string
		Command     []string
		Environment map[string]string
		EnvFile     []string `yaml:"env_file"`
		ReadOnly    bool     `yaml:"read_only"`
		CapDrop     []string `yaml:"cap_drop"`
		Security    []string `yaml:"security_opt"`
		Networks    []string
		Ports       []string
		Volumes     []string
		Healthcheck struct{ Test []string }
	}
	Networks, Volumes map[string]any
}

var composeFolder = filepath.Join("..", "..", "deploy", "compose")

func readCompose(t *testing.T) (c composeFile) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(composeFolder, "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// The compose file refers to files, volumes and networks that are there; no container runs as
// root but the one that gives volumes away, and only the proxy can be reached from elsewhere.
func TestComposeFile(t *testing.T) {
	c := readCompose(t)
	for name, s := range c.Services {
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if _, err := os.Stat(filepath.Join(composeFolder, from)); strings.HasPrefix(from, ".") && err != nil {
				t.Errorf("%s mounts %s: %v", name, from, err)
			}
			if _, is := c.Volumes[from]; !is && !strings.HasPrefix(from, ".") {
				t.Errorf("%s mounts the volume %s, which is not declared", name, from)
			}
		}
		for _, n := range s.Networks {
			if _, is := c.Networks[n]; !is {
				t.Errorf("%s is in the network %s, which is not declared", name, n)
			}
		}
		if s.Build.Context != "" {
			if _, err := os.Stat(filepath.Join(composeFolder, s.Build.Context, s.Build.Dockerfile)); err != nil {
				t.Errorf("%s is built from %s: %v", name, s.Build.Dockerfile, err)
			}
		}
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Equal(s.Security, []string{"no-new-privileges:true"}) {
			t.Errorf("%s is not confined: %+v", name, s)
		}
		yayas := strings.HasPrefix(name, "yaya-") // the image has the user
		if s.User != "65532:65532" && name != "volumes" && !yayas {
			t.Errorf("%s runs as %q, want 65532:65532", name, s.User)
		}
		if (len(s.Ports) > 0) != (name == "proxy") {
			t.Errorf("%s publishes %v, want ports of the proxy alone", name, s.Ports)
		}
		if yayas && !slices.Contains(s.Healthcheck.Test, "http://127.0.0.1:8787/health?ready=1") {
			t.Errorf("the health of %s is %v, want /health?ready=1", name, s.Healthcheck.Test)
		}
	}
	if want := []string{"nats-1", "nats-2", "nats-3", "proxy", "volumes", "yaya-1", "yaya-2", "yaya-3"}; !slices.Equal(slices.Sorted(maps.Keys(c.Services)), want) {
		t.Errorf("services %v, want %v", slices.Sorted(maps.Keys(c.Services)), want)
	}
}

// fakeDocker does for up.sh what docker compose would: run and exec start a command with the
// home of a node, and up is asked of the test. The names of the containers' addresses become
// those of this machine.
const fakeDocker = `#!/bin/sh
test "$1" = compose || exit 2
shift
case $1 in
up) echo "$*" >&3; read -r code <&4; exit "$code" ;;
run|exec) ;;
*) exit 2 ;;
esac
shift
while case $1 in -*) true ;; *) false ;; esac; do shift; done
node=$1
shift
cd "$WORK/$node" || exit 2
HOME=$WORK/$node
for a; do
	shift
	set -- "$@" "$(printf %s "$a" | sed -f "$WORK/addresses")"
done
exec "$@" 3>&- 4<&-
`

// composed runs the services of compose.yaml as processes of this machine.
type composed struct {
	t       *testing.T
	dir     string
	file    composeFile
	address map[string]string // of a container's port, on this machine
	nats    map[string]*server.Server
	nodes   map[string]started
}

// up starts services, as docker compose up --wait does; none means all.
func (c *composed) up(services []string) error {
	if len(services) == 0 {
		services = slices.Sorted(maps.Keys(c.file.Services))
	}
	for _, s := range services {
		switch {
		case strings.HasPrefix(s, "nats-") && c.nats[s] == nil:
			if err := c.startNATS(s); err != nil {
				return err
			}
		case strings.HasPrefix(s, "yaya-") && c.nodes[s].Cmd == nil:
			if err := c.startNode(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// startNATS starts a server with nats.conf, the variables of its container, and ports of this
// machine.
func (c *composed) startNATS(name string) error {
	raw, err := os.ReadFile(filepath.Join(c.dir, "compose", "nats.env"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(raw) + "HOSTNAME=" + name + "\n") {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		c.t.Setenv(key, value)
	}
	o, err := server.ProcessConfigFile(filepath.Join(c.dir, "compose", "nats.conf"))
	if err != nil {
		return err
	}
	if !o.SyncAlways || o.Username == "" || o.Password == "" || o.Cluster.Password == "" {
		return fmt.Errorf("nats.conf: %+v, want sync_interval: always, and passwords for clients and servers", o)
	}
	local := func(addr string) (int, error) {
		_, port, _ := strings.Cut(c.address[addr], ":")
		var n int
		_, err := fmt.Sscan(port, &n)
		return n, err
	}
	o.Host, o.Cluster.Host, o.HTTPPort, o.NoSigs, o.StoreDir = "127.0.0.1", "127.0.0.1", 0, true, filepath.Join(c.dir, name)
	if o.Port, err = local(name + ":4222"); err != nil {
		return err
	}
	if o.Cluster.Port, err = local(name + ":6222"); err != nil {
		return err
	}
	for i, r := range o.Routes {
		o.Routes[i] = &url.URL{Scheme: r.Scheme, User: r.User, Host: c.address[r.Host]}
	}
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	c.nats[name] = s
	c.t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	s.Start()
	return nil
}

// command returns the command of a node's container, with an address of this machine.
func (c *composed) command(name string) []string {
	x := slices.Clone(c.file.Services[name].Command)
	for i := range x { // compose reads $$ as $
		x[i] = strings.ReplaceAll(strings.ReplaceAll(x[i], "$$", "$"), "0.0.0.0:8787", c.address[name+":8787"])
	}
	return x
}

func (c *composed) environ(name string) []string {
	return []string{"PATH=" + c.dir + "/bin:" + os.Getenv("PATH"), "HOME=" + c.dir + "/" + name, "CLIENTS_USE=gate.example", "PROXIES=172.30.87.0/24", "NODE=" + name}
}

func (c *composed) startNode(name string) error {
	words := c.command(name)
	p := started{Cmd: exec.Command(words[0], words[1:]...), said: new(output), exited: make(chan struct{})} //nolint:forbidigo,noctx // stopped below
	p.Env, p.Dir, p.Stdout, p.Stderr = c.environ(name), filepath.Join(c.dir, name), p.said, p.said
	if err := p.Start(); err != nil {
		return err
	}
	go func() { _ = p.Wait(); close(p.exited) }()
	c.nodes[name] = p
	c.t.Cleanup(func() {
		_ = p.Process.Signal(syscall.SIGTERM)
		<-p.exited
		if c.t.Failed() {
			c.t.Logf("%s said:\n%s", name, p.said)
		}
	})
	for deadline := time.Now().Add(eventually.Limit); c.status(name, "gate.example", "/health?ready=1") != http.StatusOK; {
		select {
		case <-p.exited:
			return fmt.Errorf("%s ended: %s", name, p.said)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is not healthy", name)
		}
	}
	return nil
}

// status returns the status of a node's answer to a GET with a Host, 0 for none.
func (c *composed) status(name, host, path string) int {
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, "http://"+c.address[name+":8787"]+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Host = host
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// natsURL returns the URL of a server for clients, with the password of nats.env.
func (c *composed) natsURL(secrets string) string {
	_, after, _ := strings.Cut(secrets, "NATS_PASSWORD=")
	password, _, _ := strings.Cut(after, "\n")
	return "nats://yaya:" + password + "@" + c.address["nats-1:4222"]
}

// script runs up.sh, and starts what it asks docker compose for.
func (c *composed) script() string {
	c.t.Helper()
	asks, ask, err := os.Pipe()
	if err != nil {
		c.t.Fatal(err)
	}
	answer, answers, err := os.Pipe()
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.CommandContext(c.t.Context(), "sh", filepath.Join(c.dir, "compose", "up.sh"))
	cmd.Env = []string{"PATH=" + c.dir + "/bin:" + os.Getenv("PATH"), "HOME=" + c.dir, "WORK=" + c.dir, "YAYA_HOST=gate.example"}
	cmd.ExtraFiles = []*os.File{ask, answer}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	_, _ = ask.Close(), answer.Close()
	for lines := bufio.NewScanner(asks); lines.Scan(); {
		words := strings.Fields(lines.Text())
		code := 0
		if !slices.Equal(words[:min(3, len(words))], []string{"up", "-d", "--wait"}) {
			c.t.Errorf("up.sh asks for %q, want up -d --wait", words)
			code = 2
		} else if err := c.up(words[3:]); err != nil {
			c.t.Errorf("%q: %v", words, err)
			code = 1
		}
		if _, err := fmt.Fprintln(answers, code); err != nil {
			c.t.Error(err)
		}
	}
	err = cmd.Wait()
	_, _ = asks.Close(), answers.Close()
	if err != nil {
		c.t.Fatalf("up.sh: %v\n%s", err, &out)
	}
	return out.String()
}

// The script of the compose file founds a cluster with the servers of nats.conf, has the others
// join over the network of the containers, and does neither twice. A container that is not a node
// does not serve, and one that is answers to the names that clients and nodes use, and to no other.
func TestComposeBecomesACluster(t *testing.T) {
	b := newBox(t)
	c := &composed{t: t, dir: b.dir, file: readCompose(t), address: map[string]string{}, nats: map[string]*server.Server{}, nodes: map[string]started{}}
	if err := os.CopyFS(filepath.Join(c.dir, "compose"), os.DirFS(composeFolder)); err != nil {
		t.Fatal(err)
	}
	var sed strings.Builder
	for i := 1; i <= 3; i++ {
		for _, addr := range []string{fmt.Sprintf("nats-%d:4222", i), fmt.Sprintf("nats-%d:6222", i), fmt.Sprintf("yaya-%d:8787", i)} {
			c.address[addr] = freeport.Addr(t)
			fmt.Fprintf(&sed, "s/%s/%s/g\n", addr, c.address[addr])
		}
		if err := os.Mkdir(filepath.Join(c.dir, fmt.Sprint("yaya-", i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(c.dir, "addresses"), []byte(sed.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(c.dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(b.bin, filepath.Join(c.dir, "bin", "yaya")); err != nil {
		t.Fatal(err)
	}
	writeProgram(t, filepath.Join(c.dir, "bin", "docker"), fakeDocker)
	writeProgram(t, filepath.Join(c.dir, "bin", "hostname"), "#!/bin/sh\necho \"$NODE\"\n")

	alone := exec.CommandContext(t.Context(), c.command("yaya-2")[0], c.command("yaya-2")[1:]...)
	alone.Env, alone.Dir = c.environ("yaya-2"), filepath.Join(c.dir, "yaya-2")
	if out, err := alone.CombinedOutput(); exitCode(err) != 1 || !strings.Contains(string(out), "up.sh") {
		t.Fatalf("a container that is not a node: %v, %s; want exit code 1 and the script", err, out)
	}

	c.script()
	secrets, err := os.ReadFile(filepath.Join(c.dir, "compose", "nats.env"))
	if err != nil {
		t.Fatal(err)
	}
	lost := exec.CommandContext(t.Context(), b.bin, "cluster", "init", "--name", "yaya-1", "--nats", c.natsURL(string(secrets)))
	lost.Env, lost.Dir = c.environ("lost"), c.dir
	if out, err := lost.CombinedOutput(); exitCode(err) != 1 || !strings.Contains(string(out), "belongs to other nodes") {
		t.Errorf("init of a node that has lost its volume: %v, %s; want a refusal of the stream", err, out)
	}
	second := c.script()
	if again, err := os.ReadFile(filepath.Join(c.dir, "compose", "nats.env")); err != nil || !bytes.Equal(again, secrets) {
		t.Errorf("the second run has changed the passwords (%v)", err)
	}
	if strings.Contains(second, "Start it") || !strings.Contains(second, "changes can be made") {
		t.Errorf("the second run says %q, want the state of the cluster, and neither init nor join", second)
	}
	if st, err := os.Stat(filepath.Join(c.dir, "compose", "nats.env")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("nats.env: %v, %v; want mode 0600", st.Mode(), err)
	}
	for _, name := range []string{"yaya-1", "yaya-2", "yaya-3"} {
		cmd := exec.CommandContext(t.Context(), b.bin, "cluster", "status", "--json")
		cmd.Env = c.environ(name)
		raw, err := cmd.Output()
		var all admin.Cluster
		if err != nil || json.Unmarshal(raw, &all) != nil || all.Node != name || len(all.Members) != 3 || !all.Status.Quorum || all.Status.Nodes != 3 {
			t.Errorf("%s: %v, %s; want three nodes on three servers", name, err, raw)
		}
		for host, want := range map[string]int{"gate.example": 200, name + ":8787": 200, c.address[name+":8787"]: 200, "evil.example": 403} {
			if got := c.status(name, host, "/health"); got != want {
				t.Errorf("%s answers %d to Host %s, want %d", name, got, host, want)
			}
		}
	}
}
