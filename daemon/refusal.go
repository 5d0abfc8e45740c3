package daemon

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/gateway"
)

// Refusal returns what an answer of an endpoint of MCP says if it is not in the endpoint's
// protocol, and comes from what stands before the endpoint and refuses the request.
func Refusal(resp *http.Response) (text string, refused bool) {
	if speaksRPC(resp) {
		return "", false
	}
	text, _ = refusalText(resp)
	return text, true
}

// speaksRPC reports whether an answer of an endpoint of MCP is in its protocol, and does
// not come from what stands before it and refuses those who may not use it.
func speaksRPC(resp *http.Response) bool {
	mt, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return resp.StatusCode < http.StatusBadRequest || mt == "application/json" || mt == "text/event-stream"
}

// refusedBy reads an answer that refuses a request, in the words of any surface.
func refusedBy(resp *http.Response, path string) error {
	text, _ := refusalText(resp)
	if text == "" {
		text = fmt.Sprintf("yaya answered %s to %s", resp.Status, path)
	}
	return &answered{resp.StatusCode, text}
}

// maxRefusal bounds what is read of an answer that refuses something, in bytes.
const maxRefusal = 64 << 10

// refusalText returns what an answer says that refuses something, fit to be printed, ""
// if it says nothing that is known; own is what it says in the words of the API alone.
func refusalText(resp *http.Response) (text, own string) {
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) //nolint:forbidigo // bounded by the reader
	var e struct {
		Detail string `json:"detail"`
		Error  struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	switch mt, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); {
	case err != nil:
	case json.Unmarshal(raw, &e) == nil:
		text, own = cmp.Or(e.Detail, e.Error.Message), e.Detail
	case mt == "text/plain":
		text = strings.TrimSpace(string(raw))
	}
	return asStranger(resp.StatusCode, lines(text, 2000)), own
}

// lines makes a text that came from elsewhere safe for a terminal, with its lines: those after the
// first are indented, so that none passes for one of yaya's own.
func lines(text string, limit int) string {
	return strings.ReplaceAll(feature.Clean(strings.TrimSpace(text), limit), "\n", "\n  ")
}

// asStranger puts what yaya says to those whom it does not take for its user into words
// for them: a command has no token that it could send.
func asStranger(status int, text string) string {
	why, ok := strings.CutPrefix(text, gateway.NotYours)
	if status == http.StatusUnauthorized {
		why, ok = strings.TrimPrefix(text, gateway.TokenNeeded), true
	}
	if !ok {
		return text
	}
	if why = strings.TrimPrefix(why, ": "); why != "" {
		why = ": " + why
	}
	return "the running yaya does not take this command for its user's" + why + "; run it as the user that runs yaya, outside containers and sandboxes"
}
