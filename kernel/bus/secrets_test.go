package bus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// Nobody on the bus sees a secret, whoever publishes it and in whatever member.
func TestEventsHaveNoSecrets(t *testing.T) {
	s := new(masked.Secrets)
	b := bus.New(bus.Config{Secrets: s})
	defer func() {
		if err := b.Close(context.Background()); err != nil {
			t.Errorf("Close of the bus = %v, want no error", err)
		}
	}()
	s.Declare("k3y-value-0123456789")
	seen := make(chan any, 2)
	sub, err := b.Subscribe(bus.SubscribeOptions{Name: "test"}, []string{event.UserMessageReceived.Name(), event.LLMCallResponse.Name()}, func(_ context.Context, ev event.Event) error {
		seen <- ev.Payload
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	ev, err := bus.Publish(b.Kernel(), event.UserMessageReceived, "s1", event.UserMessage{Text: "it is k3y-value-0123456789"})
	if err != nil {
		t.Fatal(err)
	}
	want := event.UserMessage{Text: "it is ****"}
	for where, got := range map[string]any{"a subscriber sees": <-seen, "the publisher gets": ev.Payload} {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s %+v, want %+v", where, got, want)
		}
	}
	p, err := b.Plugin("p")
	if err != nil {
		t.Fatal(err)
	}
	raw := json.RawMessage(`{"text":"","tool_calls":[{"id":"c","name":"t","args":{"key":"\u006b3y-value-0123456789"}}],"request_id":""}`)
	if _, err := p.Emit(event.LLMCallResponse.Name(), "s1", raw); err != nil {
		t.Fatal(err)
	}
	if got, ok := (<-seen).(event.LLMResponse); !ok || len(got.ToolCalls) != 1 || string(got.ToolCalls[0].Args) != `{"key":"****"}` {
		t.Errorf("a plugin's event is %+v", got)
	}
	if !strings.Contains(string(raw), "3y-value") {
		t.Errorf("the plugin's own bytes were changed to %s", raw)
	}
}
