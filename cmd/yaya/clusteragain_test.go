package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/freeport"
)

// addressOf is where a node says that another one is reached.
func (m *member) addressOf(node string) string {
	m.t.Helper()
	for _, x := range m.cluster().Members {
		if x.Name == node {
			return x.Route
		}
	}
	return ""
}

// The majority is gone for good: a node founds the cluster again from its copy. Nodes of the earlier one
// cannot reach it, until they join again. A node that was restored from a backup does the same, at
// another address. A node that has moved tells the others.
func TestClusterFoundedAgain(t *testing.T) {
	t.Parallel()
	all, phone := newOwnCluster(t, nodeNames[:]...)
	north, south, west := all[0], all[1], all[2]
	south.knows(north.box)
	south.mustAdmit(phone.Token, "south knows the phone")
	file := filepath.Join(t.TempDir(), "south.tar.gz")
	south.must("backup", file)
	if out, err := south.run("cluster", "init", "--from-copy", "--yes"); err == nil || !strings.Contains(out, "already running") {
		t.Errorf("a cluster is founded again while the node runs: %v\n%s", err, out)
	}
	north.kill()
	west.kill()
	eventually.True(t, "south changes nothing alone", func() bool { return !south.cluster().Status.Quorum })
	end(t, south.p)
	if out, err := south.run("cluster", "init", "--from-copy"); err == nil || !strings.Contains(out, "north, west will be removed") || !strings.Contains(out, "Say --yes") {
		t.Errorf("the warning is: %v\n%s", err, out)
	}
	if out := south.must("cluster", "init", "--from-copy", "--yes"); !strings.Contains(out, "south is the only one") {
		t.Errorf("init --from-copy prints\n%s", out)
	}
	south.p = south.serve()
	south.keptBy(1)
	south.mustAdmit(phone.Token, "the founder knows the earlier devices")
	if c := south.cluster(); len(c.Members) != 1 {
		t.Errorf("the members are %+v, want south alone", c.Members)
	}
	tablet, err := south.enrolls("tablet", south.invite("default", "tools:call"))
	if err != nil {
		t.Fatal(err)
	}

	// The two others are a majority of the earlier cluster: they go on as that, and meet nobody else.
	for _, m := range []*member{north, west} {
		m.p = m.daemon("serve", "--listen", m.addr).Cmd
	}
	eventually.True(t, "the earlier nodes lead themselves", func() bool {
		out, err := north.run("cluster", "status")
		return err == nil && strings.Contains(out, "changes can be made")
	})
	if north.admits(tablet.Token) {
		t.Error("an earlier node knows a device of the cluster that was founded again")
	}
	if c := south.cluster(); !c.Status.Quorum || c.Status.Nodes != 1 || len(c.Members) != 1 {
		t.Errorf("south is %+v, want it to be alone", c)
	}
	for _, m := range []*member{north, west} {
		end(t, m.p)
	}
	route := freeport.Addr(t)
	if out, err := west.run("cluster", "join", south.invites(), "--name", "west", "--listen", route); err == nil || !strings.Contains(out, "--again") {
		t.Errorf("a node joins another cluster: %v\n%s", err, out)
	}
	west.must("cluster", "join", south.invites(), "--name", "west", "--listen", route, "--again")
	west.p = west.serve()
	south.keptBy(2)
	west.knows(south.box)
	west.mustAdmit(tablet.Token, "a node that has joined again knows what it has missed")

	// An address changes.
	moved := freeport.Addr(t)
	if out, err := west.run("cluster", "move", "--listen", moved); err == nil || !strings.Contains(out, "already running") {
		t.Errorf("a node moves while it runs: %v\n%s", err, out)
	}
	end(t, west.p)
	if out, err := west.run("cluster", "move", "--listen", "nowhere"); err == nil || !strings.Contains(out, "HOST:PORT") {
		t.Errorf("a node moves nowhere: %v\n%s", err, out)
	}
	west.must("cluster", "move", "--listen", moved)
	west.p = west.serve()
	south.keptBy(2)
	eventually.True(t, "the other node knows the new address", func() bool { return south.addressOf("west") == moved })
	end(t, south.p)
	south.p = south.daemon("serve", "--listen", south.addr).Cmd
	eventually.True(t, "a node that starts finds the one that has moved", func() bool {
		out, err := south.run("cluster", "status")
		return err == nil && strings.Contains(out, "changes can be made")
	})
	for _, m := range []*member{south, west} {
		end(t, m.p)
	}

	// A backup of a node, on another machine.
	if out, err := newBox(t).run("cluster", "init", "--from-copy", "--yes"); err == nil || !strings.Contains(out, "not a node of a cluster") {
		t.Errorf("a cluster is founded again from nothing: %v\n%s", err, out)
	}
	b := newBox(t)
	_, notes, code := b.in(b.dir, "restore", file)
	if code != 0 || !strings.Contains(notes, "yaya cluster init --from-copy") {
		t.Errorf("restore ends with %d and\n%s", code, notes)
	}
	again := freeport.Addr(t)
	b.must("cluster", "init", "--from-copy", "--yes", "--listen", again)
	restored := &member{b, b.serve()}
	restored.keptBy(1)
	restored.mustAdmit(phone.Token, "a restored node knows what the backup had")
	if restored.admits(tablet.Token) || restored.addressOf("south") != again {
		t.Errorf("the restored node is at %s, want %s, and knows no later device", restored.addressOf("south"), again)
	}
	restored.must("device", "revoke", "phone")
}
