package gateway

import (
	"testing"
	"time"

	"github.com/yaya-ai/yaya/kernel/tool"
)

func TestStats(t *testing.T) {
	m := NewMetrics()
	m.Gauge("yaya_x", "x", func() float64 { return 7 })
	call := func(provider string, ok bool, took time.Duration, n int) {
		res := tool.Result{OK: ok}
		if !ok {
			res.ErrorKind = tool.ErrTool
		}
		for range n {
			m.ToolCalled(tool.Call{Origin: tool.OriginMCP}, tool.Definition{Identity: tool.Identity{Provider: provider}}, res, took)
		}
	}
	call("fast", true, 2*time.Millisecond, 90)
	call("fast", false, 2*time.Millisecond, 10)
	call("slow", true, 2*time.Minute, 1)
	s, err := m.Stats()
	if err != nil {
		t.Fatal(err)
	}
	fast, slow := s.Providers["fast"], s.Providers["slow"]
	if fast.Total != 100 || fast.Errors != 10 || slow.Total != 1 || slow.Errors != 0 || s.All.Total != 101 || s.All.Errors != 10 {
		t.Errorf("got %+v", s)
	}
	if fast.P50 < time.Millisecond || fast.P50 > 2500*time.Microsecond || fast.P95 <= fast.P50 || slow.P50 != time.Minute {
		t.Errorf("quantiles %v %v %v", fast.P50, fast.P95, slow.P50)
	}
	if s.All.P50 != fast.P50 && (s.All.P50 < time.Millisecond || s.All.P50 > 2500*time.Microsecond) {
		t.Errorf("of all: %v", s.All.P50)
	}
	if s.Values["yaya_x"] != 7 || s.Values["go_goroutines"] < 1 {
		t.Errorf("values %v", s.Values)
	}
}
