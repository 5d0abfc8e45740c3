package downstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

const artifactPage = 256 << 10

// readArtifact returns a page of content that was too large for a result:
// yaya:artifacts/<id>?offset=<byte>. _meta names the next page.
func (s *Server) readArtifact(x *exchange, uri, rest string) ([]byte, error) {
	id, query, _ := strings.Cut(rest, "?")
	var offset int64
	if query != "" {
		var err error
		v, ok := strings.CutPrefix(query, "offset=")
		if offset, err = strconv.ParseInt(v, 10, 64); !ok || err != nil || offset < 0 {
			return nil, x.noResource(uri)
		}
	}
	if s.cfg.Artifacts == nil {
		return nil, x.noResource(uri)
	}
	page := make([]byte, artifactPage)
	n, size, err := s.cfg.Artifacts.ReadAt(x.c.session, id, page, offset)
	if errors.Is(err, tool.ErrNoArtifact) || (err == nil && offset > size) {
		return nil, x.noResource(uri)
	}
	if err != nil {
		return nil, err
	}
	if page = page[:n]; offset+int64(n) < size {
		page = cut.Whole(page)
	}
	meta := map[string]any{"size": size, "offset": offset}
	if next := offset + int64(len(page)); next < size {
		meta["next"] = fmt.Sprintf("%s?offset=%d", relay.ArtifactURI(id), next)
	}
	out, err := json.Marshal(map[string]any{
		"contents": []any{map[string]any{"uri": uri, "mimeType": "text/plain", "text": strings.ToValidUTF8(string(page), "\ufffd")}},
		"_meta":    map[string]any{"io.github.yaya-ai/page": meta},
	})
	if err != nil {
		return nil, err
	}
	obj, err := jsonrpc.ParseObject(out)
	if err != nil {
		return nil, err
	}
	return x.cached(x.complete(obj)), nil
}
