package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/gateway/client"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/freeport"
)

// invites returns an invitation, as soon as changes can be made.
func (b *box) invites() (invitation string) {
	b.t.Helper()
	b.eventually("an invitation is made", func() (string, bool) {
		out, err := b.run("cluster", "invite", "--url", "http://"+b.addr)
		if err != nil {
			return out, false
		}
		_, invitation, _ = strings.Cut(out, "yaya cluster join ")
		invitation, _, _ = strings.Cut(invitation, " ")
		return out, strings.Contains(out, "--listen HOST:PORT")
	})
	return invitation
}

// eventually waits until a command has an effect, and says what it has printed if it has none.
func (b *box) eventually(what string, ok func() (string, bool)) {
	b.t.Helper()
	last := ""
	defer func() {
		if b.t.Failed() {
			b.t.Logf("%s: %s", what, last)
		}
	}()
	eventually.True(b.t, what, func() (done bool) {
		last, done = ok()
		return done
	})
}

// keptBy waits until so many servers keep the log.
func (m *member) keptBy(n int) {
	m.t.Helper()
	eventually.True(m.t, "the log is kept by as many servers as there should be", func() bool {
		c := m.cluster()
		return c.Status.Quorum && c.Status.Nodes == n
	})
}

// backedUp returns the names of the files in a backup.
func (b *box) backedUp() (names []string) {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "backup.tar.gz")
	b.must("backup", file)
	f, err := os.Open(file)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		b.t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		switch h, err := r.Next(); {
		case errors.Is(err, io.EOF):
			return names
		case err != nil:
			b.t.Fatal(err)
		default:
			names = append(names, h.Name)
		}
	}
}

// newOwnCluster returns running nodes that keep their log themselves, with a device that the first one
// had alone.
func newOwnCluster(t *testing.T, names ...string) (all []*member, phone client.Credentials) {
	t.Helper()
	for i, name := range names {
		b, route := newBox(t), freeport.Addr(t)
		if i == 0 {
			p := b.serve()
			var err error
			if phone, err = b.enrolls("phone", b.invite("default", "tools:call")); err != nil {
				t.Fatal(err)
			}
			end(t, p)
			if out := b.must("cluster", "init", "--listen", route, "--name", name); !strings.Contains(out, "keeps the log, on its own until others join") {
				t.Errorf("init prints\n%s", out)
			}
		} else {
			b.must("cluster", "join", all[0].invites(), "--name", name, "--listen", route)
		}
		all = append(all, &member{b, b.serve()})
		all[0].keptBy(i + 1)
	}
	return all, phone
}

// CL-01, CL-05, CL-06, CL-07: three yayas keep their log themselves. The first one alone, then two,
// then three, of which one may be killed; when it comes back it knows what it has missed; and they
// shrink to one again.
func TestClusterWithoutNATS(t *testing.T) {
	t.Parallel()
	if out, err := newBox(t).run("cluster", "init", "--listen", freeport.Addr(t), "--nats", "nats://127.0.0.1:1"); err == nil || !strings.Contains(out, "exclude each other") {
		t.Errorf("init with both kinds of servers: %v\n%s", err, out)
	}
	all, phone := newOwnCluster(t, nodeNames[:]...)
	if out, err := newBox(t).run("cluster", "join", all[0].invites(), "--name", "other"); err == nil || !strings.Contains(out, "join with --listen HOST:PORT") {
		t.Errorf("join without an address: %v\n%s", err, out)
	}
	north, south, west := all[0], all[1], all[2]
	for i, b := range all {
		b.keptBy(3)
		b.mustAdmit(phone.Token, nodeNames[i]+" admits a device that the first node had alone")
	}
	if out := west.must("cluster", "status"); !strings.Contains(out, "3 keep the log, 1 of them may fail") {
		t.Errorf("yaya cluster status prints\n%s", out)
	}
	leader := slices.Index(nodeNames[:], north.cluster().Status.Leader)
	if leader < 0 {
		t.Fatalf("the leader is %q, want one of %v", north.cluster().Status.Leader, nodeNames)
	}
	killed := all[leader]
	_, made := killed.v1("POST", "/sessions", `{"workspace_path":"`+t.TempDir()+`"}`)
	id, _ := made["session_id"].(string)
	killed.tells(id, "one")
	rest := slices.DeleteFunc(slices.Clone(all), func(m *member) bool { return m == killed })
	killed.kill()
	rest[0].eventually("a device is revoked without the server that led", func() (string, bool) {
		out, err := rest[0].run("device", "revoke", "phone")
		return out, err == nil
	})
	rest[1].eventually("a session of the server that led goes on", func() (string, bool) {
		status, got := rest[1].v1("GET", "/sessions/"+id, "")
		return fmt.Sprint(status, got), status == http.StatusOK
	})
	rest[0].tells(id, "two")
	killed.p = killed.serve()
	for _, b := range all {
		if b.knows(rest[0].box); b.admits(phone.Token) {
			t.Error("a node admits a device that another one has revoked")
		}
	}
	laptop := killed.enrollsWith(rest[1].box, "laptop")

	if names := south.backedUp(); !slices.Contains(names, "data/keys/cluster.json") || slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "nats/") }) {
		t.Errorf("the backup of a node has %q, want what makes it a node, and nothing of its server", names)
	}

	south.eventually("west is removed", func() (string, bool) {
		out, err := south.run("cluster", "remove", "west")
		return out, err == nil
	})
	gone(t, west.p)
	if out, err := west.run("serve", "--listen", west.addr); err == nil || !strings.Contains(out, "was removed") {
		t.Errorf("a node that was removed starts: %v\n%s", err, out)
	}
	west.must("cluster", "join", south.invites(), "--name", "west", "--listen", freeport.Addr(t), "--yes")
	south.must("cluster", "remove", "west")
	south.keptBy(2)
	north.kill()
	eventually.True(t, "of two nodes one changes nothing", func() bool { return !south.cluster().Status.Quorum })
	if status, answer := south.readiness(); status != http.StatusServiceUnavailable { // others may be better off
		t.Errorf("a node that reaches no majority of nodes: %d %s, want it not to be ready", status, answer)
	}
	if out, err := south.run("cluster", "remove", "north"); err == nil || !strings.Contains(out, "of two nodes both") {
		t.Errorf("remove of the other one of two nodes, which does not run: %v\n%s", err, out)
	}
	north.p = north.serve()
	north.keptBy(2)
	north.must("restart")
	north.keptBy(2)
	north.mustAdmit(laptop.Token, "a node that has restarted admits a device")
	south.eventually("north is removed", func() (string, bool) {
		out, err := south.run("cluster", "remove", "north")
		return out, err == nil
	})
	gone(t, north.p)
	south.keptBy(1)
	if out, err := south.run("cluster", "remove", "south"); err == nil || !strings.Contains(out, "the only node") {
		t.Errorf("the last node is removed: %v\n%s", err, out)
	}
	end(t, south.p)
	south.p = south.serve()
	south.mustAdmit(laptop.Token, "the last node knows everything")
	south.must("device", "revoke", "laptop")
}
