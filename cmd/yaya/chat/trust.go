package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/yaya-ai/yaya/internal/screen"
)

// look is a folder as yaya shows it before it is trusted.
type look struct {
	Folder  string `json:"folder"`
	Trusted bool   `json:"trusted"`
	Items   []struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
	} `json:"items"`
	Digest string `json:"digest"`
	shown  string // what it brings
}

func (c *Client) look(ctx context.Context, folder string) (l look, err error) {
	var raw json.RawMessage
	if err := c.call(ctx, http.MethodGet, "/api/folders/look?"+url.Values{"path": {folder}}.Encode(), nil, &raw); err != nil {
		return l, err
	}
	if err := json.Unmarshal(raw, &l); err != nil {
		return l, err
	}
	shown, ok := brings(raw)
	if !ok {
		return l, errors.New("yaya does not say what the folder brings")
	}
	l.shown = shown
	return l, nil
}

// trust shows what the folder of the session brings; yes trusts it as it was shown, and no has it
// restricted again.
func (m *model) trust(arg string) action {
	id, folder, seen := m.id, m.workspace, m.seen
	switch arg {
	case "":
		return func() error {
			l, err := m.api.look(m.ctx, folder)
			if err != nil {
				return err
			}
			m.send(looked{folder, l})
			return nil
		}
	case "yes":
		if seen.folder != folder {
			return func() error { return errors.New("/trust shows what the folder brings: read that first") }
		}
		m.seen = looked{} // each answer is about what was shown last
		return func() error {
			in := map[string]string{"path": seen.Folder, "digest": seen.Digest}
			if err := m.api.call(m.ctx, http.MethodPost, "/api/folders", in, nil); err != nil {
				return err
			}
			return m.trustChanged(id, "the folder "+screen.Clean(seen.Folder, len(seen.Folder))+" is trusted"+seen.servers())
		}
	case "no":
		m.seen = looked{}
		return func() error {
			if err := m.api.call(m.ctx, http.MethodDelete, "/api/folders?"+url.Values{"path": {folder}}.Encode(), nil, nil); err != nil {
				return err
			}
			return m.trustChanged(id, "the folder "+screen.Clean(folder, len(folder))+" is restricted: the agent only reads and searches in it")
		}
	}
	return func() error { return fmt.Errorf("/trust takes nothing, yes or no, not %q", arg) }
}

// trustChanged tells of a change, and learns how the session stands.
func (m *model) trustChanged(id, text string) error {
	m.send(told{text})
	s, err := m.api.Session(m.ctx, id)
	if err == nil {
		m.send(learnt{s})
	}
	return err
}

// looked is the message with what a folder brings.
type looked struct {
	folder string
	look
}

// show shows what a folder brings, so that it can be trusted.
func (m *model) show(l looked) {
	if l.folder != m.workspace {
		return // of a session that is no longer shown
	}
	if l.Trusted {
		m.say0("the folder " + l.Folder + " is trusted (/trust no has it restricted again)")
		return
	}
	m.seen = l
	m.say0("this folder is not trusted: the agent only reads and searches in it\n" + l.shown + "Trusting it does not approve the agent's own changes and commands, nor the agents that it starts.\n/trust yes trusts the folder as it is shown here.")
}

// servers says of a folder that was just trusted when its servers start.
func (l looked) servers() string {
	var names []string
	for _, i := range l.Items {
		if i.Kind == "server" {
			names = append(names, screen.Clean(i.Name, 60))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; its servers (" + strings.Join(names, ", ") + ") start where yaya runs in this folder: /mcp shows which"
}
