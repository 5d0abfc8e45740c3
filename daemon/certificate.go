package daemon

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
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
		return nil, c.explain(err)
	}
	c.loaded, c.changed = &pair, st.ModTime()
	return c.loaded, nil
}

// explain says which of the files is wrong, and what has to be in them.
func (c *certificate) explain(err error) error {
	says := strings.TrimPrefix(err.Error(), "tls: ")
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return fmt.Errorf("read the certificate and its key: %w", err)
	case says == "private key does not match public key":
		return fmt.Errorf("--tls-key %s is the key of another certificate than --tls-cert %s: give the pair that belongs together", c.key, c.cert)
	}
	return fmt.Errorf("--tls-cert %s and --tls-key %s are not a certificate and its private key in PEM: %s", c.cert, c.key, says)
}

// status is how it is.
func (c *certificate) status() []certs.Status {
	pair, err := c.get(nil)
	if err != nil || pair.Leaf == nil {
		return []certs.Status{{Name: c.cert, Err: err}}
	}
	return []certs.Status{{Name: c.cert, Expires: pair.Leaf.NotAfter, Issuer: pair.Leaf.Issuer.String()}}
}
