package sessions_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/yaya-ai/yaya/kernel/session"
)

// uncopied is an owner of all sessions, that has copied nothing while it is away.
type uncopied struct {
	session.Owner
	away bool
}

func (*uncopied) Hold(context.Context, string, string) error { return nil }

func (*uncopied) Elsewhere(context.Context, string) string { return "" }

func (*uncopied) Grew(string, session.File) {}

func (*uncopied) Describe(string, json.RawMessage) {}

func (o *uncopied) Kept(context.Context, string, session.File) error {
	if o.away {
		return session.ErrUnavailable
	}
	return nil
}

// CL-04: a message that was refused because it is not copied is not acknowledged when it is sent again, before it is.
func TestSentAgainBeforeCopied(t *testing.T) {
	w := newWorld(t, "")
	owner := &uncopied{}
	w.stop()
	w.owner = owner
	w.start("")
	path := "/v1/sessions/" + w.create() + "/messages"
	const body = `{"role":"system","id":"s1","parts":[{"type":"text","text":"be kind"}]}`
	owner.away = true
	for range 2 {
		w.refused("POST", path, body, 503, "bridge_unavailable")
	}
	owner.away = false
	if out := w.must("POST", path, body, 202); out["message_id"] != "s1" {
		t.Errorf("the message is %v", out)
	}
}
