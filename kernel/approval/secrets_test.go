package approval_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/event"
)

// An ask shows no secret that a call has, and binds the call as it is.
func TestAsksHaveNoSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(masked.Secrets)
		s.Declare("k3y-value-0123456789")
		w := newWorld(t, func(c *approval.Config) { c.Secrets = s })
		w.adapter(never)
		done := make(chan event.Event)
		go func() { done <- w.call("s1", "echo k3y-value-0123456789") }()
		synctest.Wait()
		asked := w.rt.Pending()
		if len(asked) != 1 {
			t.Fatalf("%d asks wait, want 1", len(asked))
		}
		if shown := string(asked[0].Params) + asked[0].Brief; strings.Contains(shown, "k3y") || !strings.Contains(shown, "echo ****") {
			t.Errorf("the ask shows %s", shown)
		}
		if _, err := w.rt.Answer(asked[0].ID, event.Approve, "", "phone"); err != nil {
			t.Errorf("Answer = %v, want no error", err)
		}
		if ev := <-done; ev.Kind != event.ToolCallResult.Name() || w.ran != 1 {
			t.Errorf("the call ends with %s, and ran %d times", ev.Kind, w.ran)
		}
	})
}
