// Package wiretest runs a server of the wire protocol with a kernel behind it, and
// speaks to it as a client of any format would, with a foreign MessagePack.
package wiretest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/gateway/plane"
	"github.com/yaya-ai/yaya/gateway/plane/measure"
	"github.com/yaya-ai/yaya/gateway/rpc"
	"github.com/yaya-ai/yaya/gateway/wire"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/journal/journaltest"
	"github.com/yaya-ai/yaya/kernel"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/plugins/llm_echo"
	"github.com/yaya-ai/yaya/plugins/memory_sqlite"
	"github.com/yaya-ai/yaya/plugins/strategy_react"
)

var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 3072)
	if err != nil {
		panic(err)
	}
	return k
})

// World is a server with a kernel behind it.
type World struct {
	t      testing.TB
	Dir    string
	Dev    *auth.Authority
	Log    *local.Log
	FS     *journaltest.Faults // what the control log is on
	Kernel *kernel.Kernel
	Plane  *plane.Plane
	Wire   *wire.Server
	Agents *wire.Agents
	HTTP   *httptest.Server // / is the WebSocket, /rpc and /agents ask for a token
	Stop   func()

	Nodes wire.Nodes // that lead to the topics of other worlds; nil for none
	// Exports and Invoke are the skills of this kernel; set before others use it.
	Exports []string
	Invoke  func(ctx context.Context, actor, skill string, payload json.RawMessage) (json.RawMessage, error)
}

// New starts a world, which ends with the test. with changes it before.
func New(t testing.TB, with ...func(*World)) *World {
	t.Helper()
	w := &World{t: t, Dir: t.TempDir()}
	for _, f := range with {
		f(w)
	}
	w.Start("")
	t.Cleanup(func() { w.Stop() })
	return w
}

// Start starts everything on the data directory; listening where it did before.
func (w *World) Start(addr string) {
	t := w.t
	t.Helper()
	root, err := os.OpenRoot(w.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := root.MkdirAll("keys", 0o700); err != nil {
		t.Fatal(err)
	}
	keys, err := root.OpenRoot("keys")
	if err != nil {
		t.Fatal(err)
	}
	if w.Dev, err = auth.NewAuthority(auth.AuthorityConfig{Keys: keys, GenerateKey: func() (*rsa.PrivateKey, error) { return rsaKey(), nil }}); err != nil {
		t.Fatal(err)
	}
	w.FS = &journaltest.Faults{FS: journal.Root(root)}
	w.Plane = plane.New(plane.Config{KernelID: "k1", Epoch: w.Dev.ServerID(), Log: zerolog.Nop()})
	if w.Log, err = local.Open(w.FS, local.Options{Projections: []control.Projection{w.Dev, w.Plane}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Dev.Start(w.Log); err != nil {
		t.Fatal(err)
	}
	settings, err := config.Open(config.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	k, err := kernel.Open(kernel.Config{Data: root, Settings: settings, Workspace: w.Dir, Version: "test", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	memory := memory_sqlite.New(filepath.Join(w.Dir, "memory.db"))
	if err := k.Start(context.Background(), strategy_react.New(), llm_echo.New(), memory); err != nil {
		t.Fatal(err)
	}
	w.Kernel = k
	w.Wire = wire.New(wire.Config{
		Authority: w.Dev, KernelID: "k1", Log: zerolog.Nop(), Attempts: auth.NewAttempts(time.Now), Nodes: w.Nodes,
		Audience: func(r *http.Request) string { return "ws://" + r.Host + r.URL.Path },
		Address:  func(r *http.Request) netip.Addr { return netip.MustParseAddrPort(r.RemoteAddr).Addr() }, OnPresence: w.Plane.Presence,
	})
	w.Agents = wire.NewAgents(wire.AgentsConfig{Server: w.Wire, Sessions: k.Sessions, Loop: k.Loop, Approvals: k.Approvals})
	w.Wire.Handle("agent:lobby", w.Plane.Lobby())
	w.Wire.Handle(wire.AgentPrefix, w.Agents)
	err = w.Plane.Start(context.Background(), plane.Running{
		Log: w.Log, Server: w.Wire, Bus: k.Bus, Sessions: k.Sessions, Loop: k.Loop, Mix: new(measure.Mix), Memories: memory.Count,
		Exports: func() []string { return w.Exports },
		Invoke: func(ctx context.Context, by tool.Caller, skill string, payload json.RawMessage) (json.RawMessage, error) {
			return w.Invoke(ctx, by.Principal, skill, payload)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.HTTP = httptest.NewUnstartedServer(w.mux())
	if addr != "" {
		_ = w.HTTP.Listener.Close()
		for range 100 { // the address is free as soon as the system says so
			if w.HTTP.Listener, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr); err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w.HTTP.Start()
	w.Stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		err := w.Wire.Close(ctx)
		w.Plane.Close()
		w.Agents.Close()
		w.HTTP.Close()
		if err := errors.Join(err, k.Stop(ctx, "test"), w.Log.Close(), keys.Close(), root.Close()); err != nil {
			t.Error(err)
		}
	})
}

// mux lets devices reach /rpc and /agents by their tokens.
func (w *World) mux() http.Handler {
	identified := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			p, err := w.Dev.VerifyToken(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
			if err != nil {
				http.Error(rw, "a token is needed", http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(rw, r.WithContext(auth.WithPrincipal(r.Context(), p)))
		})
	}
	mux := http.NewServeMux()
	mux.Handle("/", w.Wire)
	mux.HandleFunc("POST /auth/register", func(rw http.ResponseWriter, r *http.Request) {
		var body auth.Registration
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			rw.WriteHeader(http.StatusBadRequest)
			return
		}
		got, err := w.Dev.Register(r.Context(), "p", body)
		w.token(rw, got.Token, got.RequestID, err)
	})
	mux.HandleFunc("POST /auth/refresh", func(rw http.ResponseWriter, r *http.Request) {
		t, err := w.Dev.Refresh(r.Context(), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		w.token(rw, t, "", err)
	})
	for _, r := range rpc.Routes(w.Plane, zerolog.Nop()) {
		mux.Handle(r.Pattern, identified(r.Handler))
	}
	return mux
}

// token answers as the gateway does.
func (w *World) token(rw http.ResponseWriter, t auth.Token, request string, err error) {
	status, body := http.StatusOK, map[string]any{"server_id": w.Dev.ServerID()}
	switch {
	case err != nil:
		status, body["detail"] = http.StatusUnauthorized, err.Error()
	case request != "":
		status, body["request_id"] = http.StatusAccepted, request
	default:
		body["device_token"], body["expires_at"] = t.Token, t.ExpiresAt
	}
	rw.WriteHeader(status)
	_ = json.NewEncoder(rw).Encode(body)
}

// Gadget is a device with its key.
type Gadget struct {
	ID    string
	Key   ed25519.PrivateKey
	Token string
}

func (w *World) Enroll(id string, scopes ...auth.Scope) *Gadget {
	w.t.Helper()
	if scopes == nil {
		scopes = auth.AllScopes()
	}
	pub, key, _ := ed25519.GenerateKey(rand.Reader)
	inv, err := w.Dev.Invite(context.Background(), auth.LocalOwner, "", scopes)
	if err != nil {
		w.t.Fatal(err)
	}
	got, err := w.Dev.Register(context.Background(), "p", auth.Registration{PublicKey: base64.StdEncoding.EncodeToString(pub), DeviceID: id, Code: inv.Code})
	if err != nil {
		w.t.Fatal(err)
	}
	return &Gadget{id, key, got.Token.Token}
}
