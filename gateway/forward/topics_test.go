package forward_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/yaya-ai/yaya/auth"
)

// CL-13: a WebSocket to the node that has something carries who opens it, established as for other
// requests. Without such a node there is no error.
func TestOpen(t *testing.T) {
	r := newRig(t)
	r.serve(r.identity, func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/node/things/there":
			w.WriteHeader(http.StatusOK)
		case "/live":
			ws, err := new(websocket.Upgrader).Upgrade(w, req, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = ws.Close() }()
			who := fmt.Sprint(auth.FromContext(req.Context()).Name(), " ", req.URL.RawQuery, " ", req.Header.Get("Yaya-Caller"))
			if err := ws.WriteMessage(websocket.TextMessage, []byte(who)); err != nil {
				t.Error(err)
			}
		default:
			http.NotFound(w, req)
		}
	})
	phone := auth.Principal{Kind: auth.Device, ID: "phone"}
	for what, c := range map[string]struct {
		who              auth.Principal
		token, has, path string
		want, err        string
	}{
		"the owner":        {auth.LocalOwner, "", "there", "/live?x=1", "owner x=1 ", ""},
		"a device":         {phone, "good", "there", "/live?x=1", "device:phone x=1 ", ""},
		"an unknown token": {phone, "bad", "there", "/live", "", "403"},
		"nobody":           {auth.Principal{}, "", "there", "/live", "", "403"},
		"another path":     {auth.LocalOwner, "", "there", "/dead", "", "404"},
		"nothing":          {auth.LocalOwner, "", "nowhere", "/live", "", ""},
	} {
		ws, node, err := r.north.Open(t.Context(), "/node/things/"+c.has, c.path, c.who, c.token)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || (ws != nil) != (c.want != "") || (node == "south") != (c.has == "there") {
			t.Errorf("%s: %v, %q, %v; want %q, or an error with %q", what, ws, node, err, c.want, c.err)
		}
		if ws == nil {
			continue
		}
		if _, got, err := ws.ReadMessage(); err != nil || string(got) != c.want {
			t.Errorf("%s: south takes it for %q, %v, want %q", what, got, err, c.want)
		}
		_ = ws.Close()
	}
}
