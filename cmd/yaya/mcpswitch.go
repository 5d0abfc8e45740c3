package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Switch implements [admin.Servers].
func (s *serverAdmin) Switch(ctx context.Context, name string, on bool) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	x, known := s.list[name]
	err := s.mayChange(name)
	if !known && err == nil {
		err = s.unknown(name)
	}
	s.mu.Unlock()
	if err != nil || x.Disabled == !on {
		return err
	}
	x.Disabled = !on
	return s.put(ctx, x)
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
