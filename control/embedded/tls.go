package embedded

import (
	"crypto/tls"
	"fmt"
	"time"

	"github.com/yaya-ai/yaya/control/nodes"
)

// routeTLS is how the two ends of a route know each other; it is the same for both. A node that has
// just joined is not known everywhere yet, so those that were removed are refused, and no others.
func routeTLS(cfg Config) (*tls.Config, error) {
	return nodes.TLS(cfg.Identity, cfg.Node, time.Now, func(node string) error {
		if cfg.Removed != nil && cfg.Removed(node) {
			return fmt.Errorf("the node %q was removed from the cluster", node)
		}
		return nil
	})
}
