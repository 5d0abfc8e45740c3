package downstream

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// repeated says of no message that its headers agree when the library says that they do not, and
// recognizes what clients usually send.
func TestRepeatedHeaders(t *testing.T) {
	values := []string{"", "echo", "Echo", "tools/call", "resources/read", "prompts/get", "tools/list", "=?base64?ZWNobw==?=", " echo", "a\\u0062", "ä", "file:///a"}
	seen := map[bool]int{}
	for _, method := range values {
		for _, inBody := range values {
			for _, inMethod := range values {
				for _, inName := range values {
					var msg jsonrpc.Message
					body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"name":"` + inBody + `","uri":"` + inBody + `"}}`
					if method == "" || msg.Parse([]byte(body)) != nil {
						continue
					}
					h := http.Header{}
					for name, v := range map[string]string{mcp.HeaderMethod: inMethod, mcp.HeaderName: inName} {
						if v != "" {
							h.Set(name, v)
						}
					}
					got := repeated(h, &msg)
					err := mcp.ValidateStandardHeaders(h.Get, mcp.ProtocolVersion20260728, mcp.MCPMethod(msg.Method), nameOnly(&msg))
					if got && err != nil {
						t.Errorf("%s with the method %q and the name %q: the headers agree, want %v", body, inMethod, inName, err)
					}
					if !got && err == nil && !strings.Contains(inName, "=?") {
						t.Errorf("%s with the method %q and the name %q: the headers do not agree, want that they do", body, inMethod, inName)
					}
					seen[got]++
				}
			}
		}
	}
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("got %v, want both answers", seen)
	}
}
