package forward

import (
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/yaya-ai/yaya/control/tunnel"
)

// Transport returns the way of this node's own requests to another one.
func (f *Forwarder) Transport(node string) http.RoundTripper { return calls{f, node} }

type calls struct {
	f    *Forwarder
	node string
}

// RoundTrip implements [http.RoundTripper]. For a node that is not there the error is that of a
// connection that could not be made: nothing was sent.
func (c calls) RoundTrip(r *http.Request) (*http.Response, error) {
	if !c.f.members.Has(c.node) {
		return nil, notThere(fmt.Errorf("%s is not a node of the cluster: yaya cluster status lists them", c.node))
	}
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = "https", c.node, c.node
	r.Header.Set(callerHeader, fromOwner)
	r.Header.Del("Authorization")
	resp, err := c.f.proxy.Transport.RoundTrip(r)
	if errors.Is(err, tunnel.ErrNobody) {
		err = notThere(fmt.Errorf("the node %s is not running", c.node))
	}
	return resp, err
}

func notThere(err error) error { return &net.OpError{Op: "dial", Net: "node", Err: err} }
