package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Switch implements [admin.Servers]. Of the file only the switch changes; what its user
// has edited in the entry otherwise is taken over with it.
func (s *serverAdmin) Switch(ctx context.Context, name string, on bool) error {
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
	out, found, err := servers.SetDisabled(s.p.servers(), data, name, !on)
	switch {
	case err != nil:
		return refused("%v", err)
	case !found && known:
		return &told{admin.ErrUnknown, fmt.Sprintf("the server %q is no longer in %s: yaya reload takes that over", name, s.p.servers())}
	case !found:
		return gone
	}
	x, bad, err := entryIn(s.p.servers(), out, name)
	if err == nil && x == nil {
		err = refused("the configuration of %q in %s cannot be read: %v", name, s.p.servers(), bad)
	}
	if err != nil {
		return err
	}
	if known && bytes.Equal(out, data) && revision(was) == revision(*x) {
		if why := s.unusable(name); on && why != nil {
			return refused("%q is switched on, and was not started: %v", name, why)
		}
		return nil
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
func (s *serverAdmin) read() ([]byte, error) {
	data, _, err := readFile(s.p.servers())
	if err != nil {
		return nil, refused("the configuration of the servers cannot be read: %v", err)
	}
	return data, nil
}

func (s *serverAdmin) write(data []byte) error {
	if err := atomicfile.Replace(s.p.servers(), data); err != nil {
		return refused("the configuration of the servers cannot be written: %v", err)
	}
	return nil
}

// unknown is the error of a server that is not in the list; mu is held.
func (s *serverAdmin) unknown(name string) error {
	for _, i := range s.bad {
		if i.Name == name {
			return refused("the configuration of %q in %s cannot be read: %v", name, i.File, i.Err)
		}
	}
	for _, x := range s.wait {
		if x.server.Name == name {
			return &told{admin.ErrUnknown, fmt.Sprintf("the server %q comes with the folder %s, which is not trusted: yaya trust %s", name, x.folder.Folder, x.folder.Folder)}
		}
	}
	return &told{admin.ErrUnknown, fmt.Sprintf("there is no server %q", name)}
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

// revision names the configuration of a server, "" for none.
func revision(x servers.Server) string {
	raw, err := json.Marshal(x)
	if err != nil { // cannot be: it was made of JSON
		return ""
	}
	h := hmac.New(sha256.New, revisionKey)
	h.Write(raw)
	return hex.EncodeToString(h.Sum(nil)[:16])
}
