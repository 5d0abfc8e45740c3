package manage

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/userfile"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Switch switches a server on or off, in the configuration too. Of the file only the switch changes; what its user
// has edited in the entry otherwise is taken over with it. Switch calls record right before something changes, and
// changes nothing if that fails.
func (s *Manager) Switch(ctx context.Context, name string, on bool, record func() error) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	was, known := s.list[name]
	err, gone := s.mayChange(name), s.unknown(name)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	data, err := s.read()
	if err != nil {
		return err
	}
	out, found, err := servers.SetDisabled(s.cfg.File, data, name, !on)
	switch {
	case err != nil:
		return refused("%v", err)
	case !found && known:
		return &told{ErrUnknown, fmt.Sprintf("the server %q is no longer in %s, and yaya has not read the file since: yaya reload reads it, or shows the mistake that prevents it", name, s.cfg.File)}
	case !found:
		return gone
	}
	x, bad, err := entryIn(s.cfg.File, out, name)
	if err == nil && x == nil {
		err = refused("the configuration of %q in %s cannot be read: %v", name, s.cfg.File, bad)
	}
	if err != nil {
		return err
	}
	if known && bytes.Equal(out, data) && Revision(was) == Revision(*x) {
		if why := s.unusable(name); on && why != nil {
			return refused("%q is switched on, and was not started: %v", name, why)
		}
		return nil
	}
	if err := record(); err != nil {
		return err
	}
	if err := s.write(out); err != nil {
		return err
	}
	s.take(ctx, *x)
	if why := s.unusable(name); on && why != nil {
		return refused("%q is switched on, and was not started: %v", name, why)
	}
	return nil
}

// read and write work on yaya's own file of servers. The file is its user's, who gets to
// read what is wrong with it, with its links and with its folder.
func (s *Manager) read() ([]byte, error) {
	data, _, err := userfile.Read(s.cfg.File)
	if err != nil {
		return nil, refused("the configuration of the servers cannot be read: %v", err)
	}
	return data, nil
}

func (s *Manager) write(data []byte) error {
	if err := atomicfile.Replace(s.cfg.File, data); err != nil {
		return refused("the configuration of the servers cannot be written: %v", err)
	}
	return nil
}

// Known returns an error if there is no server of that name: none that is configured, cannot be
// read, waits with its folder, or stands in a file that was refused.
func (s *Manager) Known(name string) error {
	s.mu.Lock()
	_, known := s.list[name]
	known = known || slices.ContainsFunc(s.bad, func(x servers.Invalid) bool { return x.Name == name })
	known = known || slices.ContainsFunc(s.wait, func(x Pending) bool { return x.Server.Name == name })
	gone := s.unknown(name)
	s.mu.Unlock()
	if known {
		return nil
	}
	if s.cfg.Own {
		if data, err := s.read(); err == nil {
			if _, found, err := servers.Unset(s.cfg.File, data, name); found || err != nil {
				return nil //nolint:nilerr // whoever changes the file says what is wrong with it
			}
		}
	}
	return gone
}

// unknown is the error of a server that is not in the list; mu is held.
func (s *Manager) unknown(name string) error {
	for _, i := range s.bad {
		if i.Name == name {
			return refused("the configuration of %q in %s cannot be read: %v", name, i.File, i.Err)
		}
	}
	for _, x := range s.wait {
		if x.Server.Name == name {
			return &told{ErrUnknown, fmt.Sprintf("the server %q comes with the folder %s, which is not trusted: yaya trust %s", name, x.Folder.Folder, x.Folder.Folder)}
		}
	}
	return &told{ErrUnknown, fmt.Sprintf("there is no server %q", name)}
}

// told is an error of a kind, with words of its own.
type told struct {
	kind error
	text string
}

func (e *told) Error() string { return e.text }
func (e *told) Unwrap() error { return e.kind }

// revisionKey keeps revisions from telling what the secrets of a configuration are.
var revisionKey = []byte(rand.Text())

// Revision names the configuration of a server, "" for none.
func Revision(x servers.Server) string {
	raw, err := json.Marshal(x)
	if err != nil { // cannot happen: it was built from JSON
		return ""
	}
	h := hmac.New(sha256.New, revisionKey)
	h.Write(raw)
	return hex.EncodeToString(h.Sum(nil)[:16])
}
