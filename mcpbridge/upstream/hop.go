package upstream

import (
	"bytes"

	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// What belongs to one hop of a message, and never to the next: members that only the
// modern era has, and the protocol's own keys of _meta.
var (
	hopOfResults  = []string{"resultType", "ttlMs", "cacheScope"}
	hopOfRequests = []string{"inputResponses", "requestState"}
)

const metaOfHop = "io.modelcontextprotocol/"

// passedOn returns a result as the client may see it. A result that came in the
// client's own era keeps what the era has; keys of _meta are the server's hop in both.
func (r reply) passedOn(era servers.Era, to relay.Peer) reply {
	if r.err != nil || to == nil || !r.result.IsObject() {
		return r
	}
	var edits []jsonrpc.Edit
	if to.Modern() != (era == servers.EraModern) {
		for _, name := range hopOfResults {
			if r.result.Get(name) != nil {
				edits = append(edits, jsonrpc.Edit{Name: name})
			}
		}
	}
	if meta, changed := foreignMeta(r.result); changed {
		edits = append(edits, meta)
	}
	if edits == nil {
		return r
	}
	out, err := r.edited(edits...)
	if err != nil { // it was scanned, and the edits only remove
		return r
	}
	return out
}

// edited returns a reply with edits to its result, in place of r, whose memory is given
// back. A copy that is large counts as the original did.
func (r reply) edited(edits ...jsonrpc.Edit) (reply, error) {
	copied := bufpool.Get(len(r.result.Raw()))
	copied.B = r.result.Append(copied.B, edits...)
	obj, err := jsonrpc.ParseObject(copied.B)
	if err != nil {
		copied.Release()
		return r, err
	}
	if r.buf != nil {
		r.buf.HandOver(copied)
	}
	return reply{result: obj, buf: copied}, nil
}

// foreignMeta returns the edit that takes the hop's keys out of _meta; false
// when it has none.
func foreignMeta(o jsonrpc.Object) (jsonrpc.Edit, bool) {
	meta := o.Get("_meta")
	if meta == nil || !bytes.Contains(meta, []byte(metaOfHop)) {
		return jsonrpc.Edit{}, false
	}
	out, skipped := appendForeign([]byte{'{'}, meta, true)
	if len(out) == 1 {
		return jsonrpc.Edit{Name: "_meta"}, skipped
	}
	return jsonrpc.Edit{Name: "_meta", Value: append(out, '}')}, skipped
}

// withoutHop returns the _meta of a question without what concerns one hop only, its
// progress token included, nil when nothing is left.
func withoutHop(meta []byte) []byte {
	out, _ := appendForeign([]byte{'{'}, meta, false)
	if len(out) == 1 {
		return nil
	}
	return append(out, '}')
}

// appendForeign appends the members of a _meta that pass on to the next hop, to an
// object that has just been opened, and reports whether it left some out. The token of
// progress passes where the next hop knows it.
func appendForeign(dst, meta []byte, token bool) (out []byte, skipped bool) {
	if meta == nil {
		return dst, false
	}
	obj, err := jsonrpc.ParseObject(meta)
	if err != nil {
		return dst, false
	}
	open := len(dst)
	for i := range obj.Len() {
		name, value := obj.At(i)
		if isReserved(name) || (name == "progressToken" && !token) {
			skipped = true
			continue
		}
		if len(dst) > open {
			dst = append(dst, ',')
		}
		dst = append(append(jsonrpc.AppendString(dst, name), ':'), value...)
	}
	return dst, skipped
}

// answered returns what a client has answered to a server's question.
func answered(o jsonrpc.Object) []byte {
	if meta, changed := foreignMeta(o); changed {
		return o.Append(nil, meta)
	}
	return o.Raw()
}

// passedOn returns a notification without what was its hop's own.
func (n note) passedOn() note {
	if !bytes.Contains(n.params, []byte(metaOfHop)) {
		return n
	}
	obj, err := jsonrpc.ParseObject(n.params)
	if err != nil {
		return n
	}
	if meta, changed := foreignMeta(obj); changed {
		n.params = obj.Append(nil, meta)
	}
	return n
}

// withoutEra takes out of a client's request what means something in its era only,
// when the server is met in the other one.
func (o *outgoing) withoutEra(era servers.Era) {
	if o.peer == nil || o.peer.Modern() == (era == servers.EraModern) {
		return
	}
	for _, name := range hopOfRequests {
		if o.params.Get(name) != nil {
			o.edits = append(o.edits, jsonrpc.Edit{Name: name})
		}
	}
}
