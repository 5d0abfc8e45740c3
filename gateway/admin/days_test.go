package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/traffic"
)

// otherNodes answer what nodes ask each other, by name; those without an API do not.
type otherNodes map[string]*admin.API

func (otherNodes) Find(context.Context, string, func(http.ResponseWriter, *http.Request, string)) http.Handler {
	return nil
}

func (o otherNodes) Ask(ctx context.Context, path string, read func(string, io.Reader) error) (missing []string) {
	for node, a := range o {
		rec := httptest.NewRecorder()
		if a != nil {
			a.ForNodes(rec, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
		}
		if a == nil || rec.Code != http.StatusOK || read(node, rec.Body) != nil {
			missing = append(missing, node)
		}
	}
	return missing
}

// recorded returns a record of so many calls of a server.
func recorded(t *testing.T, server string, n int) *admin.Traffic {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := traffic.New(traffic.Config{Root: root, Settings: func() traffic.Settings { return traffic.Settings{Days: 7, MaxBytes: 1 << 20} }, Mask: func(dst, b []byte) []byte { return append(dst, b...) }, Log: zerolog.Nop()})
	t.Cleanup(func() {
		if err := errors.Join(l.Close(context.Background()), root.Close()); err != nil {
			t.Error(err)
		}
	})
	for range n {
		l.Add(&traffic.Call{Start: time.Now(), Method: traffic.MethodTool, Server: server, Tool: "t", Outcome: traffic.OutcomeOK})
	}
	l.Settle(t.Context())
	return &admin.Traffic{Log: l, Data: root, Bodies: func() (string, string) { return "off", "" }}
}

// The totals of calls are those of all nodes that answer, each with its node; those that do not are
// named. A filter holds on each of them.
func TestTotalsOfNodes(t *testing.T) {
	w := newWorld(t)
	w.admin.Traffic = recorded(t, "weather", 2)
	w.rebuild()
	totals := func(query string) (out admin.NodeTotals, shown string) {
		t.Helper()
		if err := json.Unmarshal([]byte(w.want("GET", "/api/traffic/nodes"+query, "", 200, "")), &out); err != nil {
			t.Fatal(err)
		}
		for _, d := range out.Days {
			for _, row := range d.Rows {
				shown += fmt.Sprintf("%s %s %d, ", d.Node, row.Server, row.Calls)
			}
		}
		return out, shown
	}
	if _, got := totals(""); got != " weather 2, " {
		t.Errorf("the totals of a yaya that is alone are %q, want its own", got)
	}
	south := admin.New(admin.Config{Traffic: recorded(t, "weather", 3), Log: zerolog.Nop(), Bus: w.bus, Settings: w.cfg})
	west := admin.New(admin.Config{Traffic: recorded(t, "maps", 4), Log: zerolog.Nop(), Bus: w.bus, Settings: w.cfg})
	w.admin.Others = otherNodes{"south": south, "west": west, "east": nil}
	w.rebuild()
	out, got := totals("")
	if got != " weather 2, south weather 3, west maps 4, " || len(out.Missing) != 1 || out.Missing[0] != "east" {
		t.Errorf("the totals are %q without %v, want those of three nodes, without east", got, out.Missing)
	}
	if _, got := totals("?server=maps&by=total"); got != "west  4, " {
		t.Errorf("the totals of a server are %q, want those of west", got)
	}
	if out, _ := totals("?to=2000-01-01"); len(out.Days) != 0 {
		t.Errorf("the totals of another time are %+v, want none", out)
	}
	w.want("GET", "/api/traffic/nodes?by=x", "", 400, "query.by")
}
