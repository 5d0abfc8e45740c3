package measure_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/gateway/plane/measure"
)

// W-34: entropy and drift are what their formulas say.
func TestMix(t *testing.T) {
	var m measure.Mix
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 0.01 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	near("entropy of nothing", m.Entropy(), 0)
	near("drift of nothing", m.Drift(), 0)
	for range 64 {
		m.Add("a")
	}
	near("entropy of one kind", m.Entropy(), 0)
	for range 64 {
		m.Add("b")
	}
	near("entropy of two kinds alike", m.Entropy(), 1)
	near("drift while everything is recent", m.Drift(), 0)
	for range 64 {
		m.Add("c")
	}
	for range 64 {
		m.Add("c")
	}
	near("entropy of ¼ ¼ ½", m.Entropy(), 1.5/math.Log2(3))
	for range 256 * 40 { // ever since something else
		m.Add("d")
	}
	near("drift once the new is the usual", m.Drift(), 0.01)
	for range 256 {
		m.Add("e")
	}
	if d := m.Drift(); d < 0.85 || d > 1 {
		t.Errorf("drift of something never done before is %v", d)
	}
	for n := range 5000 { // bounded
		m.Add(fmt.Sprint(n))
	}
	if e := m.Entropy(); e < 0 || e > 1 {
		t.Errorf("entropy is %v", e)
	}
}

// W-42, W-43: verdicts follow from what was measured, and not before there is
// enough of it.
func TestFitness(t *testing.T) {
	var f measure.Fitness
	for n := range 19 {
		if v, _ := f.Add(true, time.Millisecond); v != measure.Unchanged {
			t.Fatalf("a verdict after %d", n+1)
		}
	}
	if v, score := f.Add(true, time.Millisecond); v != measure.Promote || score < 0.99 {
		t.Errorf("after 20 successes: %v, %v", v, score)
	}
	if v, _ := f.Add(true, time.Millisecond); v != measure.Unchanged {
		t.Error("it is promoted twice")
	}
	failures := 0
	for v := measure.Unchanged; v != measure.Demote; failures++ {
		if failures > 50 {
			t.Fatal("it is never demoted")
		}
		v, _ = f.Add(false, time.Millisecond)
	}
	if failures != 21 { // of 42, half have failed
		t.Errorf("demoted after %d failures", failures)
	}
	var slow measure.Fitness
	for range 50 {
		if v, score := slow.Add(true, 10*time.Second); v != measure.Unchanged || math.Abs(score-0.5) > 0.01 {
			t.Fatalf("a slow skill: %v, %v", v, score)
		}
	}
	if slow.Score() > 0.51 {
		t.Errorf("got %v, want at most 0.51", slow.Score())
	}
}
