package manage_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/secrets"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/oauth"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// A person signs in at a server elsewhere that asks for it, and at no other.
func TestRemote(t *testing.T) {
	r := start(t, `"local":{"command":"cat"},"open":{"url":"https://example.com/mcp"},"key":{"url":"https://example.com/mcp","oauth":{"grant":"client_credentials","clientId":"x","clientSecret":"y"}},"broken":{"url":"https://${NOT_SET_ANYWHERE}/mcp"}`, "")
	l, err := manage.Load(r.file, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"open":   "",
		"local":  "is a local command and needs no sign-in",
		"key":    "needs no sign-in",
		"broken": "NOT_SET_ANYWHERE",
		"none":   `there is no server "none"`,
	} {
		t.Run(name, func(t *testing.T) {
			s, err := l.Remote(name, servers.Scope{Env: func(string) (string, bool) { return "", false }})
			if err == nil {
				err = manage.SignIn{Server: s}.Check()
			}
			if (err == nil) != (want == "") || !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("Remote(%q) and Check() = %v, want %q", name, err, want)
			}
		})
	}
}

// A server that asks for nothing is not signed in at, and no page is shown.
func TestSignInAtAnOpenServer(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct{ ID json.RawMessage }
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Errorf("the body of a request: %v, want JSON", err)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
	}))
	defer srv.Close()
	data, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = data.Close() }()
	s := manage.SignIn{Server: servers.Server{Name: "s", URL: srv.URL, Transport: servers.HTTP}, Grants: oauth.NewStore(data, secrets.New(secrets.Options{Data: data, KeyDir: t.TempDir()}))}
	back, err := manage.OpenCallback(t.Context(), s.Server)
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	show := func(page string) { t.Errorf("shown %s, want no page", page) }
	for name, ask := range map[string]func() (bool, error){
		"Browse()": func() (bool, error) { return s.Browse(t.Context(), back, show) },
		"Paste()":  func() (bool, error) { return s.Paste(t.Context(), strings.NewReader(""), show) },
	} {
		if granted, err := ask(); granted || err != nil {
			t.Errorf("%s = %t, %v, want false without an error", name, granted, err)
		}
	}
}
