package daemon

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// nodeServers is below which nodes call each other's MCP servers.
const nodeServers = "/node/servers/"

// callHeader says who a call is from that a node passes on: a [passedCall] as JSON in base64. It
// means nothing on requests of anybody else.
const callHeader = "Yaya-Call"

// passedCall is the caller of a call that a node passes on. The node that runs the server believes
// it: it believes that node, too, when it says that somebody is the owner.
type passedCall struct {
	Principal string      `json:"principal"`
	Behind    []string    `json:"behind,omitempty"`
	Scopes    []string    `json:"scopes,omitempty"`
	Origin    tool.Origin `json:"origin"`
}

// vouch returns the header of a call that this node passes on.
func vouch(who tool.Caller, origin tool.Origin) http.Header {
	c := passedCall{Principal: who.Principal, Behind: who.Behind, Origin: origin}
	for _, scope := range auth.ScopeNames() {
		if who.May(scope) {
			c.Scopes = append(c.Scopes, scope)
		}
	}
	raw, err := json.Marshal(c)
	if err != nil { // strings can always be marshalled
		return nil
	}
	return http.Header{callHeader: {base64.StdEncoding.EncodeToString(raw)}}
}

// vouched returns the caller that a node has vouched for, limited to one server.
func vouched(r *http.Request, server string) (who tool.Caller, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(r.Header.Get(callHeader))
	var c passedCall
	if err != nil || json.Unmarshal(raw, &c) != nil || c.Origin == "" || c.Origin == tool.OriginNode || slices.ContainsFunc(append(c.Behind, c.Principal), unnamed) {
		return who, false
	}
	who = tool.Caller{
		Principal: c.Principal, Behind: c.Behind, Via: c.Origin, Servers: []string{server},
		Has: func(scope string) bool { return slices.Contains(c.Scopes, scope) },
	}
	if name, is := strings.CutPrefix(c.Principal, tool.ServerPrefix); is {
		who.But = name
	}
	return who, true
}

// unnamed reports whether a text is not the name of a principal.
func unnamed(principal string) bool {
	if principal == tool.Owner {
		return false
	}
	kind, name, _ := strings.Cut(principal, ":")
	return name == "" || !slices.Contains([]string{tool.DevicePrefix, tool.IssuerPrefix, tool.TokenPrefix, tool.AgentPrefix, tool.GatewayPrefix, tool.ServerPrefix}, kind+":")
}

// elsewhere is the way to the servers of other nodes.
func (c *cluster) elsewhere(node, server string) (way http.RoundTripper, address string) {
	return c.forward.Transport(node), (&url.URL{Scheme: "https", Host: node, Path: nodeServers + url.PathEscape(server)}).String()
}

// serveNode serves the calls of a server here that another node passes on. One that runs on a third
// node is called there, and not through this one.
func (b *bridge) serveNode(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("server")
	who, ok := vouched(r, name)
	switch {
	case !ok:
		http.Error(w, "the node does not say who the call is from", http.StatusForbidden)
	case !b.mcp.RunsHere(name):
		http.Error(w, fmt.Sprintf("the node %s runs no server %q: its entry there is missing, disabled or invalid, or names another node", b.core.st.cluster().nodes.Name(), name), http.StatusNotFound)
	default:
		b.down.PassedOn(w, r, who)
	}
}
