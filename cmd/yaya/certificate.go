package main

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/certs"
)

// certificate is read again when its file changes: certificates are renewed while
// yaya runs.
type certificate struct {
	cert, key string

	mu      sync.Mutex
	loaded  *tls.Certificate
	changed time.Time
	looked  time.Time
}

// lookEvery is how often the file is looked at, at most.
const lookEvery = 10 * time.Second

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loaded != nil && time.Since(c.looked) < lookEvery {
		return c.loaded, nil
	}
	c.looked = time.Now()
	st, err := os.Stat(c.cert)
	if err == nil && c.loaded != nil && st.ModTime().Equal(c.changed) {
		return c.loaded, nil
	}
	var pair tls.Certificate
	if err == nil {
		pair, err = tls.LoadX509KeyPair(c.cert, c.key)
	}
	if err != nil {
		if c.loaded != nil { // half-way through a renewal: the old one is better than none
			return c.loaded, nil
		}
		return nil, fmt.Errorf("TLS: %w", err)
	}
	c.loaded, c.changed = &pair, st.ModTime()
	return c.loaded, nil
}

// status is how it is.
func (c *certificate) status() []certs.Status {
	pair, err := c.get(nil)
	if err != nil || pair.Leaf == nil {
		return []certs.Status{{Name: c.cert, Err: err}}
	}
	return []certs.Status{{Name: c.cert, Expires: pair.Leaf.NotAfter, Issuer: pair.Leaf.Issuer.String()}}
}
