package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/gateway/client"
	"github.com/yaya-ai/yaya/gateway/plane"
	"github.com/yaya-ai/yaya/gateway/plane/agents"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/freeport"
)

// natsServers are three NATS servers, as a team runs them.
type natsServers struct {
	t     *testing.T
	o     [3]*server.Options
	s     [3]*server.Server
	paths string // the URL of all
}

func newNATS(t *testing.T) *natsServers {
	t.Helper()
	n := &natsServers{t: t}
	var routes []*url.URL
	var all []string
	for i := range n.o {
		client, cluster := freeport.Port(t), freeport.Port(t)
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprint("127.0.0.1:", cluster)})
		all = append(all, fmt.Sprint("nats://yaya:secret-of-nats@127.0.0.1:", client))
		n.o[i] = &server.Options{
			ServerName: fmt.Sprint("nats", i), Host: "127.0.0.1", Port: client, JetStream: true, StoreDir: t.TempDir(), NoSigs: true,
			Username: "yaya", Password: "secret-of-nats", Cluster: server.ClusterOpts{Name: "team", Host: "127.0.0.1", Port: cluster},
		}
	}
	n.paths = strings.Join(all, ",")
	for i := range n.o {
		n.o[i].Routes = routes
		n.start(i)
	}
	t.Cleanup(func() {
		for i := range n.s {
			n.stop(i)
		}
	})
	eventually.True(t, "the servers have a leader", func() bool {
		return slices.ContainsFunc(n.s[:], func(s *server.Server) bool { return s.JetStreamIsLeader() })
	})
	return n
}

func (n *natsServers) start(i int) {
	n.t.Helper()
	s, err := server.NewServer(n.o[i].Clone())
	if err != nil {
		n.t.Fatal(err)
	}
	n.s[i] = s
	s.Start()
	if !s.ReadyForConnections(30 * time.Second) {
		n.t.Fatal("a NATS server is not ready")
	}
}

func (n *natsServers) stop(i int) {
	if n.s[i] != nil {
		n.s[i].Shutdown()
		n.s[i].WaitForShutdown()
		n.s[i] = nil
	}
}

// member is a node that runs.
type member struct {
	*box
	p *exec.Cmd
}

// newCluster returns three yayas that are the nodes of a cluster, and run. The first one had a
// device and an agent when it was alone.
func newCluster(t *testing.T, n *natsServers) (all [3]*member, phone client.Credentials) {
	t.Helper()
	for i, name := range nodeNames {
		b := newBox(t)
		if i == 0 {
			p := b.serve()
			var err error
			if phone, err = b.enrolls("phone", b.invite("default", "tools:call")); err != nil {
				t.Fatal(err)
			}
			b.must("run", "hello")
			end(t, p)
			b.must("cluster", "init", "--nats", n.paths, "--name", name)
		} else {
			b.must("cluster", "join", all[0].joinInvitation(), "--name", name)
		}
		all[i] = &member{b, b.serve()}
	}
	return all, phone
}

var nodeNames = [3]string{"north", "south", "west"}

func (b *box) joinInvitation() string {
	b.t.Helper()
	var out admin.JoinInvitation
	if err := json.Unmarshal([]byte(b.must("cluster", "invite", "--url", "http://"+b.addr, "--json")), &out); err != nil {
		b.t.Fatal(err)
	}
	return out.Invitation
}

func (b *box) cluster() (c admin.Cluster) {
	b.t.Helper()
	if err := json.Unmarshal([]byte(b.must("cluster", "status", "--json")), &c); err != nil {
		b.t.Fatal(err)
	}
	return c
}

// enrolls enrolls a device with a code.
func (b *box) enrolls(name, code string) (client.Credentials, error) {
	b.t.Helper()
	c, err := client.New("http://"+b.addr, name, name)
	if err != nil {
		b.t.Fatal(err)
	}
	return c, c.Enroll(b.t.Context(), nil, code)
}

// knows waits until a node has applied what another one has. A test that polled with a code or
// a token that the node does not know yet would be taken for somebody who guesses.
func (b *box) knows(other *box) {
	b.t.Helper()
	index := other.cluster().Status.Index
	eventually.True(b.t, "the node knows what another one knows", func() bool { return b.cluster().Status.Index >= index })
}

// enrollsWith enrolls a device with a code that another node makes, and that counts once.
func (b *box) enrollsWith(other *box, name string) client.Credentials {
	b.t.Helper()
	code := other.invite("default", "tools:call")
	b.knows(other)
	c, err := b.enrolls(name, code)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, at := range []*box{b, other} {
		if _, err := at.enrolls("thief", code); err == nil {
			b.t.Error("a code was used twice, want an error")
		}
	}
	return c
}

// admits reports whether a node accepts a token. One that is cut off does not.
func (b *box) admits(token string) bool {
	b.t.Helper()
	status, err := refusedWith(b.t.Context(), b.url(), token)
	return err == nil && status != http.StatusServiceUnavailable
}

// mustAdmit waits until a node accepts a token, which it knows: it may have been cut off for a while.
func (b *box) mustAdmit(token, what string) {
	b.t.Helper()
	eventually.True(b.t, what, func() bool { return b.admits(token) })
}

// CL-01, CL-05, CL-06, CL-07, W-44: several yayas have one truth. It begins with all that the
// first node had alone; a code and an invitation count once; a device that is revoked on one node is
// out on all; a node that was killed catches up; one that was removed does not come back.
func TestCluster(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	all, phone := newCluster(t, n)
	north, south, west := all[0], all[1], all[2]
	eventually.True(t, "another node knows the agent that the first node had alone, and its kernel", func() bool {
		c := south.cluster()
		return len(c.Agents) == 1 && slices.ContainsFunc(c.Kernels, func(k plane.KernelInfo) bool { return k.ID == c.Agents[0].KernelID && k.Status == "connected" })
	})
	for i, b := range all {
		c := b.cluster()
		if len(c.Members) != 3 || c.Node != nodeNames[i] || !c.Status.Quorum || c.Status.Nodes != 3 || !strings.HasPrefix(c.Status.Leader, "nats") {
			t.Errorf("%s: the cluster is %+v, want three members, and three servers with a leader", nodeNames[i], c)
		}
		b.mustAdmit(phone.Token, nodeNames[i]+" admits a device that the first node had alone")
	}
	if text := south.must("cluster", "status"); !strings.Contains(text, "south (this one)") || !strings.Contains(text, "changes can be made") {
		t.Errorf("yaya cluster status prints\n%s", text)
	}

	tablet := west.enrollsWith(south.box, "tablet")
	for _, b := range all {
		b.knows(west.box)
		b.mustAdmit(tablet.Token, "a node admits a device that another one has enrolled")
	}

	watch := client.Start(client.Options{Credentials: tablet})
	defer watch.Close()
	for i, b := range all {
		eventually.True(t, "every node knows that the tablet is connected to west, and that all kernels are", func() bool {
			c := b.cluster()
			there := 0
			for _, k := range c.Kernels {
				if k.Status == "connected" {
					there++
				}
			}
			at := ""
			for _, m := range c.Members {
				if m.Kernel != "" && len(m.Devices) > 0 {
					at += m.Name + strings.Join(m.Devices, " ")
				}
			}
			return slices.Equal(c.Present, []string{"tablet"}) && there == 3 && at == "westtablet"
		})
		if i == 0 {
			continue
		}
		id := "session-of-" + nodeNames[i]
		b.must("run", "--session", id, "hello")
		eventually.True(t, "every node knows the agents of the others", func() bool {
			return slices.ContainsFunc(north.cluster().Agents, func(a agents.Agent) bool { return a.ID == id && a.Status == "idle" })
		})
	}
	west.must("device", "revoke", "phone")
	for _, b := range all {
		if b.knows(west.box); b.admits(phone.Token) {
			t.Error("a node admits a device that another one has revoked")
		}
	}

	west.kill()
	laptop := north.enrollsWith(south.box, "laptop")
	west.p = west.serve()
	west.knows(north.box)
	west.mustAdmit(laptop.Token, "a node that was killed knows what it has missed")

	south.must("cluster", "remove", "west")
	gone(t, west.p)
	if out, err := west.run("serve", "--listen", west.addr); err == nil || !strings.Contains(out, "was removed") {
		t.Errorf("a node that was removed starts: %v\n%s", err, out)
	}
	used := north.joinInvitation()
	east, late := newBox(t), newBox(t)
	east.must("cluster", "join", used, "--name", "east")
	if out, err := late.run("cluster", "join", used, "--name", "late"); err == nil || !strings.Contains(out, "was used") {
		t.Errorf("an invitation was used twice: %v\n%s", err, out)
	}
	south.kill()
	log := south.file("control", "log.jsonl")
	raw, err := os.ReadFile(log)
	if err == nil {
		raw[len(raw)/2] ^= 1
		err = os.WriteFile(log, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := south.run("serve", "--listen", south.addr); err == nil || !strings.Contains(out, "yaya repair") {
		t.Errorf("a node whose copy is damaged starts: %v\n%s", err, out)
	}
	if out := south.must("repair", "--control"); !strings.Contains(out, "fetches the log from the cluster") {
		t.Errorf("the repair of a node prints\n%s", out)
	}
	south.p = south.serve()
	south.knows(north.box)
	south.mustAdmit(laptop.Token, "a node that was repaired knows what the others know")
	north.must("restart")
	if c := north.cluster(); len(c.Members) != 3 {
		t.Errorf("the members are %+v, want north, south and east", c.Members)
	}
}

// CL-01, CL-09: the example, as a user runs it.
func TestClusterExample(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "../../examples/cluster/run.sh")
	cmd.Env = append(os.Environ(), "YAYA="+binary(t))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "3 nodes have all of them") || !strings.HasSuffix(strings.TrimSpace(string(out)), "done") {
		t.Errorf("got %v, want \"3 nodes have all of them\" in it, \"done\" at its end\n%s", err, out)
	}
}

// CL-02, CL-09, W-67: while most servers of the log are gone, nodes refuse changes and devices,
// answer their owner with what they have, and can restart. Afterwards all goes on.
func TestClusterWithoutQuorum(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	all, phone := newCluster(t, n)
	north, south := all[0], all[1]
	n.stop(1)
	n.stop(2)
	eventually.True(t, "a node says that no change can be made", func() bool {
		return strings.Contains(north.must("cluster", "status"), "no change can be made")
	})
	eventually.True(t, "a node says since when no change can be made, and that it is behind", func() bool {
		c := north.cluster()
		return !c.Since.IsZero() && c.Behind != nil && *c.Behind > 0
	})
	eventually.True(t, "what a node answers says how old it may be", func() bool {
		_, _, h := north.raw("GET", "/api/devices", "")
		return h.Get("Yaya-Stale") != ""
	})
	if out, err := north.run("device", "invite"); err == nil || !strings.Contains(out, "cannot be written") {
		t.Errorf("a code was made without a quorum: %v\n%s", err, out)
	}
	for _, b := range []*member{north, south} { // nobody knows whether another node has revoked it
		eventually.True(t, "a node that is cut off refuses devices", func() bool {
			status, _ := refusedWith(t.Context(), b.url(), phone.Token)
			return status == http.StatusServiceUnavailable
		})
	}
	for _, b := range all { // clients are no better off elsewhere
		eventually.True(t, "no node is taken out of service when none can make changes", func() bool {
			status, answer := b.readiness()
			return status == http.StatusOK && strings.Contains(answer, "no node can make changes")
		})
	}
	south.kill()
	south.daemon("serve", "--listen", south.addr)
	eventually.True(t, "a node starts without a quorum", func() bool {
		_, err := south.run("cluster", "status")
		return err == nil
	})
	for _, b := range all {
		if out := b.must("device", "list"); !strings.Contains(out, "phone") {
			t.Errorf("the devices without a quorum are\n%s", out)
		}
	}
	n.start(1)
	n.start(2)
	eventually.True(t, "changes can be made again", func() bool {
		_, err := south.run("device", "revoke", "phone")
		return err == nil
	})
	for _, b := range all {
		if b.knows(south.box); b.admits(phone.Token) {
			t.Error("a node admits a device that another one has revoked")
		}
	}
	eventually.True(t, "the node that had started meanwhile is announced", func() bool {
		return !south.cluster().Members[1].Started.IsZero()
	})
}

// end ends a yaya, and waits for it.
func end(t *testing.T, p *exec.Cmd) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	gone(t, p)
}

// kill ends a node at once.
func (m *member) kill() {
	m.t.Helper()
	if err := m.p.Process.Kill(); err != nil {
		m.t.Fatal(err)
	}
	gone(m.t, m.p)
}
