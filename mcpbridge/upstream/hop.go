package upstream

import (
	"bytes"

	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Parts of a message that belong to one hop only: members that exist only in the modern era,
// and the protocol's own keys of _meta.
var (
	hopOfResults  = []string{"resultType", "ttlMs", "cacheScope"}
	hopOfRequests = []string{"inputResponses", "requestState"}
)

const metaOfHop = "io.modelcontextprotocol/"

// passedOn returns a result in the form for the client. A result in the client's own era keeps
// the era's members; the protocol's keys of _meta belong to the server's hop in both eras.
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
	if err != nil { // the result was scanned, and the edits only remove members
		return r
	}
	return out
}

// edited returns a reply with edits to its result. It replaces r and releases r's memory. A
// large copy counts like the original.
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

// foreignMeta returns the edit that removes the hop's keys from _meta; false if there are none.
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

// withoutHop returns the _meta of a question without the keys of one hop, including its
// progress token; nil if nothing is left.
func withoutHop(meta []byte) []byte {
	out, _ := appendForeign([]byte{'{'}, meta, false)
	if len(out) == 1 {
		return nil
	}
	return append(out, '}')
}

// appendForeign appends the members of a _meta that go to the next hop to a newly opened
// object, and reports whether it omitted some. The progress token goes along if the next hop
// knows it.
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
		if key := obj.Key(i); isReserved(key) || (string(key) == "progressToken" && !token) {
			skipped = true
			continue
		}
		name, value := obj.At(i)
		if len(dst) > open {
			dst = append(dst, ',')
		}
		dst = append(append(jsonrpc.AppendString(dst, name), ':'), value...)
	}
	return dst, skipped
}

// answered returns a client's answer to a server's question.
func answered(o jsonrpc.Object) []byte {
	if meta, changed := foreignMeta(o); changed {
		return o.Append(nil, meta)
	}
	return o.Raw()
}

// passedOn returns a notification without the keys of its hop.
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

// withoutEra removes the members of a client's request that only its own era defines, if the
// server speaks the other one.
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
