package jetstream_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/jetstream"
)

// BenchmarkAppend appends changes, and publishes messages of the same size to a stream with the
// same settings, one at a time, on one server, on three and on five. Goal: 0.6 of the plain stream.
func BenchmarkAppend(b *testing.B) {
	b.Run("servers=1", func(b *testing.B) {
		conn := alone(b)
		compare(b, conn, 1, open(b, conn, jetstream.Options{Node: "a", Copy: replica(b, b.TempDir())}))
	})
	for _, size := range []int{3, 5} {
		b.Run(fmt.Sprint("servers=", size), func(b *testing.B) {
			c := newClusterOf(b, size)
			for _, n := range c.nodes[1:] { // they would be on other machines
				if err := n.log.Close(); err != nil {
					b.Fatal(err)
				}
				n.log = nil
			}
			compare(b, c.nodes[0].conn, size, c.nodes[0].log)
		})
	}
}

// timed calls do again and again, and reports how long all but one in a hundred calls take.
func timed(b *testing.B, do func() error) {
	b.Helper()
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		if err := do(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

func compare(b *testing.B, conn *nats.Conn, replicas int, l *jetstream.Log) {
	b.Helper()
	b.Run("plain", func(b *testing.B) {
		api, err := js.New(conn)
		if err != nil {
			b.Fatal(err)
		}
		name := fmt.Sprint("plain", b.N)
		_ = api.DeleteStream(b.Context(), name) // of an earlier round
		_, err = api.CreateStream(b.Context(), js.StreamConfig{Name: name, Subjects: []string{name}, Storage: js.FileStorage, Replicas: replicas, AllowDirect: true})
		if err != nil {
			b.Fatal(err)
		}
		var last uint64
		timed(b, func() error {
			ack, err := api.Publish(b.Context(), name, make([]byte, 400), js.WithExpectLastSequence(last), js.WithMsgID(fmt.Sprint(last)))
			if err == nil {
				last = ack.Sequence
			}
			return err
		})
	})
	b.Run("append", func(b *testing.B) {
		timed(b, func() error {
			_, err := l.Append(b.Context(), control.Change{Event: "test_event", Actor: "tester", Target: "target"}, nil)
			return err
		})
	})
}
