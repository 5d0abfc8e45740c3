package kernel_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/hosttest"
	"github.com/yaya-ai/yaya/kernel"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/plugins/llm_echo"
	"github.com/yaya-ai/yaya/plugins/memory_sqlite"
	"github.com/yaya-ai/yaya/plugins/strategy_react"
)

// BenchmarkTurn is a whole turn with the echo model, its tape included: with no
// tool call, and with one.
func BenchmarkTurn(b *testing.B) {
	for name, prompt := range map[string]string{"plain": "hello there", "with a tool call": `/tool read_artifact {"id":"x"}`} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			root, err := os.OpenRoot(dir)
			if err != nil {
				b.Fatal(err)
			}
			defer root.Close()
			settings, err := config.Open(config.Options{Root: root})
			if err != nil {
				b.Fatal(err)
			}
			k, err := kernel.Open(kernel.Config{Data: root, Settings: settings, Workspace: dir, Log: zerolog.Nop()})
			if err != nil {
				b.Fatal(err)
			}
			if err := k.Start(b.Context(), strategy_react.New(), llm_echo.New(), memory_sqlite.New(filepath.Join(dir, "m.db"))); err != nil {
				b.Fatal(err)
			}
			n := 0
			b.ReportAllocs()
			start := hosttest.ProcessorTime(b)
			for b.Loop() {
				// A fresh session now and then: the history is a part of each model call.
				out, err := k.Loop.Run(b.Context(), loop.Prompt{SessionID: "s" + string(rune('a'+n/50%26)), Text: prompt})
				if err != nil || out.Err != nil {
					b.Fatalf("got %v, %v, want no error", out, err)
				}
				n++
			}
			b.ReportMetric(float64((hosttest.ProcessorTime(b)-start).Microseconds())/float64(b.N), "cpu-µs/op")
			if err := k.Stop(context.Background(), "bench over"); err != nil {
				b.Fatal(err)
			}
		})
	}
}
