package auth_test

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/internal/journal"
)

// Signing keys are made once: that takes long.
var rsaKeys = func() func(n int) *rsa.PrivateKey {
	var mu sync.Mutex
	var keys []*rsa.PrivateKey
	return func(n int) *rsa.PrivateKey {
		mu.Lock()
		defer mu.Unlock()
		for len(keys) <= n {
			k, err := rsa.GenerateKey(rand.Reader, 3072)
			if err != nil {
				panic(err)
			}
			keys = append(keys, k)
		}
		return keys[n]
	}
}()

// world is an authority with its log in a data directory.
type world struct {
	*auth.Authority
	t    *testing.T
	dir  string
	root *os.Root
	log  *local.Log
	made int
	now  func() time.Time
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, dir: t.TempDir(), now: time.Now}
	w.open()
	t.Cleanup(w.close)
	return w
}

func (w *world) try() (err error) {
	w.t.Helper()
	if w.root, err = os.OpenRoot(w.dir); err != nil {
		w.t.Fatal(err)
	}
	if err := w.root.MkdirAll("keys", 0o700); err != nil {
		w.t.Fatal(err)
	}
	keys, err := w.root.OpenRoot("keys")
	if err != nil {
		w.t.Fatal(err)
	}
	w.Authority, err = auth.NewAuthority(auth.AuthorityConfig{
		Keys: keys, Now: func() time.Time { return w.now() },
		GenerateKey: func() (*rsa.PrivateKey, error) { w.made++; return rsaKeys(w.made - 1), nil },
	})
	if err != nil {
		return err
	}
	w.log, err = local.Open(journal.Root(w.root), local.Options{Projections: []control.Projection{w.Authority}, Now: func() time.Time { return w.now() }})
	if err != nil {
		return err
	}
	return w.Start(w.log)
}

func (w *world) open() {
	w.t.Helper()
	if err := w.try(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) close() {
	if w.log != nil {
		w.log.Close()
	}
	w.root.Close()
}

func (w *world) restart() {
	w.t.Helper()
	w.close()
	w.open()
}

// events are the names of what is in the log.
func (w *world) events() (out []string) {
	w.t.Helper()
	if err := w.log.Read(1, func(e control.Entry) error { out = append(out, e.Event); return nil }); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// gadget is a device.
type gadget struct {
	id  string
	key ed25519.PrivateKey
}

func newGadget(id string) gadget {
	_, key, _ := ed25519.GenerateKey(rand.Reader)
	return gadget{id, key}
}

func (g gadget) public() string {
	return base64.StdEncoding.EncodeToString(g.key.Public().(ed25519.PublicKey))
}

func (g gadget) registration() auth.Registration {
	return auth.Registration{PublicKey: g.public(), DeviceID: g.id, Label: "a " + g.id}
}

// enroll enrolls a device by a code.
func (w *world) enroll(g gadget, scopes ...auth.Scope) auth.Token {
	w.t.Helper()
	if scopes == nil {
		scopes = auth.DefaultScopes()
	}
	inv, err := w.Invite(w.t.Context(), auth.LocalOwner, "", scopes)
	if err != nil {
		w.t.Fatal(err)
	}
	r := g.registration()
	r.Code = inv.Code
	got, err := w.Register(w.t.Context(), "peer", r)
	if err != nil {
		w.t.Fatal(err)
	}
	return got.Token
}

func (w *world) principal(token auth.Token) auth.Principal {
	w.t.Helper()
	p, err := w.VerifyToken(token.Token)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// W-6, W-8, W-9, W-10: a code enrolls one device, and gives it an RS256 token for
// this instance that names the device and its key and lives for 24 hours.
func TestEnrollByCode(t *testing.T) {
	w := newWorld(t)
	g := newGadget("phone")
	inv, err := w.Invite(t.Context(), auth.LocalOwner, "Pho\x1b[31mne\u202e", []auth.Scope{auth.AgentsRead})
	if err != nil {
		t.Fatal(err)
	}
	r := g.registration()
	r.Code = strings.ToLower(strings.ReplaceAll(inv.Code, "-", " "))
	before := time.Now().Truncate(time.Second)
	got, err := w.Register(t.Context(), "peer", r)
	if err != nil || got.RequestID != "" {
		t.Fatalf("got %v, %v, want no RequestID", got, err)
	}
	if d := got.ExpiresAt.Sub(before); d < 24*time.Hour || d > 24*time.Hour+time.Minute {
		t.Errorf("it lives for %v", d)
	}
	var claims jwt.MapClaims
	tok, _, err := jwt.NewParser().ParseUnverified(got.Token.Token, &claims)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(g.key.Public().(ed25519.PublicKey))
	iss := "urn:yaya:" + w.ServerID()
	if tok.Header["alg"] != "RS256" || claims["sub"] != "phone" || claims["fpr"] != hex.EncodeToString(sum[:]) || claims["iss"] != iss || claims["exp"].(float64)-claims["iat"].(float64) != 86400 ||
		claims["jti"] == "" || claims["nbf"] == nil {
		t.Errorf("header %v, claims %v", tok.Header, claims)
	}
	// JWKS verifies it, as any library would.
	var set struct{ Keys []map[string]string }
	if err := json.Unmarshal(w.JWKS(), &set); err != nil || len(set.Keys) != 1 || set.Keys[0]["kid"] != tok.Header["kid"] {
		t.Fatalf("got %v, %v, want len(Keys) 1, Keys[0].kid %v", set, err, tok.Header["kid"])
	}
	n, _ := base64.RawURLEncoding.DecodeString(set.Keys[0]["n"])
	if _, err := jwt.Parse(got.Token.Token, func(*jwt.Token) (any, error) {
		return &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: 65537}, nil
	}, jwt.WithValidMethods([]string{"RS256"})); err != nil {
		t.Errorf("Parse of the token with the key of JWKS = %v, want no error", err)
	}
	p, err := w.VerifyToken(got.Token.Token)
	if err != nil || p.ID != "phone" || auth.Allow(p, auth.AgentsRead) != nil || !errors.Is(auth.Allow(p, auth.SessionsRead), auth.ErrForbidden) {
		t.Errorf("VerifyToken = %+v, %v, want the device phone with %s and without %s", p, err, auth.AgentsRead, auth.SessionsRead)
	}
	// The code is used up, also for the same device and after a restart (R34).
	w.restart()
	if _, err := w.Register(t.Context(), "peer", r); !errors.Is(err, auth.ErrRefused) {
		t.Errorf("the code works twice: %v", err)
	}
	infos, err := w.Devices(auth.LocalOwner)
	if err != nil || len(infos) != 1 || infos[0].Label != "Pho·[31mne·" || infos[0].Status != "active" || infos[0].ApprovedBy != "owner" {
		t.Errorf(`got %+v, %v, want len(infos) 1, infos[0].Label "Pho·[31mne·", infos[0].Status "active", infos[0].ApprovedBy "owner"`, infos, err)
	}
	if p, err := w.VerifyToken(got.Token.Token); err != nil || p.ID != "phone" {
		t.Errorf("after a restart: %v", err)
	}
}

// W-7, W-76, AU-20, AU-21: malformed keys, ids and base64 are refused.
func TestBadRegistrations(t *testing.T) {
	w := newWorld(t)
	b64 := base64.StdEncoding.EncodeToString
	good := newGadget("g").public()
	le := func(hexa string) []byte { b, _ := hex.DecodeString(hexa); return b }
	for name, r := range map[string]auth.Registration{
		"empty":         {DeviceID: "d"},
		"31 bytes":      {PublicKey: b64(make([]byte, 31)), DeviceID: "d"},
		"33 bytes":      {PublicKey: b64(make([]byte, 33)), DeviceID: "d"},
		"64 bytes":      {PublicKey: b64(make([]byte, 64)), DeviceID: "d"},
		"64 KiB":        {PublicKey: b64(make([]byte, 64<<10)), DeviceID: "d"},
		"hex":           {PublicKey: hex.EncodeToString(make([]byte, 32)), DeviceID: "d"},
		"url alphabet":  {PublicKey: strings.Repeat("_", 43) + "=", DeviceID: "d"},
		"no padding":    {PublicKey: strings.TrimRight(good, "="), DeviceID: "d"},
		"line break":    {PublicKey: good[:10] + "\n" + good[10:], DeviceID: "d"},
		"zero":          {PublicKey: b64(make([]byte, 32)), DeviceID: "d"},
		"one":           {PublicKey: b64(append([]byte{1}, make([]byte, 31)...)), DeviceID: "d"},
		"order 8":       {PublicKey: b64(le("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")), DeviceID: "d"},
		"order 8, sign": {PublicKey: b64(le("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa")), DeviceID: "d"},
		"minus one":     {PublicKey: b64(le("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f")), DeviceID: "d"},
		"prime":         {PublicKey: b64(le("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f")), DeviceID: "d"},
		"prime + 9":     {PublicKey: b64(le("f6ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f")), DeviceID: "d"},
		"no id":         {PublicKey: good},
		"long id":       {PublicKey: good, DeviceID: strings.Repeat("x", 129)},
		"bad id":        {PublicKey: good, DeviceID: "a/b"},
		"owner":         {PublicKey: good, DeviceID: "owner"},
		"bad proof":     {PublicKey: good, DeviceID: "d", Proof: "%"},
	} {
		if got, err := w.Register(t.Context(), "peer", r); !errors.Is(err, auth.ErrBadRequest) {
			t.Errorf("%s: got %+v, %v, want error %v", name, got, err, auth.ErrBadRequest)
		}
	}
	if _, err := w.Register(t.Context(), "peer", auth.Registration{PublicKey: good, DeviceID: strings.Repeat("x", 128)}); err != nil {
		t.Errorf("the longest id: %v", err)
	}
	if ev := w.events(); len(ev) != 0 {
		t.Errorf("strangers have written %v", ev)
	}
}

// AU-29, R5: without a code there is nothing but a request, until somebody
// approves it and the device proves its key; the proof is good once.
func TestApproval(t *testing.T) {
	w := newWorld(t)
	g := newGadget("laptop")
	got, err := w.Register(t.Context(), "127.0.0.1", g.registration())
	if err != nil || got.Token.Token != "" || got.RequestID == "" {
		t.Fatalf("got %v, %v, want no Token, a RequestID", got, err)
	}
	if again, err := w.Register(t.Context(), "127.0.0.1", g.registration()); err != nil || again.RequestID != got.RequestID {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	proof := g.registration()
	proof.RequestID = got.RequestID
	proof.Proof = base64.StdEncoding.EncodeToString(auth.SignRegistration(g.key, w.ServerID(), got.RequestID, g.id))
	if r, err := w.Register(t.Context(), "p", proof); err != nil || r.Token.Token != "" || r.RequestID != got.RequestID {
		t.Errorf("before approval: %+v, %v", r, err)
	}
	infos, _ := w.Devices(auth.LocalOwner)
	if len(infos) != 1 || infos[0].Status != "pending" || infos[0].RequestID != got.RequestID {
		t.Fatalf(`got %+v, want len(infos) 1, infos[0].Status "pending", infos[0].RequestID %v`, infos, got.RequestID)
	}
	if _, err := w.Approve(t.Context(), auth.LocalOwner, "laptop", auth.DefaultScopes()); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*auth.Registration){
		"other request": func(r *auth.Registration) { r.RequestID = "req_other" },
		"other server": func(r *auth.Registration) {
			r.Proof = base64.StdEncoding.EncodeToString(auth.SignRegistration(g.key, "another", got.RequestID, g.id))
		},
		"other key": func(r *auth.Registration) {
			r.Proof = base64.StdEncoding.EncodeToString(auth.SignRegistration(newGadget("x").key, w.ServerID(), got.RequestID, g.id))
		},
		"short":  func(r *auth.Registration) { r.Proof = "AAAA" },
		"long":   func(r *auth.Registration) { r.Proof = base64.StdEncoding.EncodeToString(make([]byte, 65)) },
		"device": func(r *auth.Registration) { r.DeviceID = "other" },
	} {
		r := proof
		change(&r)
		if _, err := w.Register(t.Context(), "p", r); !errors.Is(err, auth.ErrRefused) {
			t.Errorf("%s: got %v, want error %v", name, err, auth.ErrRefused)
		}
	}
	r, err := w.Register(t.Context(), "p", proof)
	if err != nil || r.Token.Token == "" {
		t.Fatalf("got %v, %v, want a Token", r, err)
	}
	if _, err := w.Register(t.Context(), "p", proof); !errors.Is(err, auth.ErrRefused) {
		t.Errorf("the proof works twice: %v", err)
	}
	if want := []string{"device_approved", "signing_key_added", "device_token_issued"}; !slices.Equal(w.events(), want) {
		t.Errorf("the log has %v", w.events())
	}
	// A known device gets another token by its proof alone; a rejected one gets none.
	again, err := w.Register(t.Context(), "p", g.registration())
	if err != nil || again.RequestID == "" {
		t.Fatalf("got %v, %v, want a RequestID", again, err)
	}
	proof.RequestID = again.RequestID
	proof.Proof = base64.StdEncoding.EncodeToString(auth.SignRegistration(g.key, w.ServerID(), again.RequestID, g.id))
	if r, err := w.Register(t.Context(), "p", proof); err != nil || r.Token.Token == "" {
		t.Errorf("a known device: %+v, %v", r, err)
	}
	other := newGadget("other")
	req, _ := w.Register(t.Context(), "p", other.registration())
	if err := w.Reject(auth.LocalOwner, req.RequestID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Approve(t.Context(), auth.LocalOwner, req.RequestID, nil); !errors.Is(err, auth.ErrNotFound) {
		t.Errorf("a rejected request: %v", err)
	}
}

// AU-31: an id belongs to its first key forever.
func TestIdsKeepTheirKeys(t *testing.T) {
	w := newWorld(t)
	g := newGadget("phone")
	tok := w.enroll(g)
	thief := newGadget("phone")
	inv, _ := w.Invite(t.Context(), auth.LocalOwner, "", auth.DefaultScopes())
	r := thief.registration()
	for _, code := range []string{"", inv.Code} {
		r.Code = code
		if _, err := w.Register(t.Context(), "p", r); !errors.Is(err, auth.ErrConflict) {
			t.Errorf("code %q: %v", code, err)
		}
	}
	w.principal(tok)
	if err := w.Revoke(t.Context(), auth.LocalOwner, "phone", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Register(t.Context(), "p", r); !errors.Is(err, auth.ErrConflict) {
		t.Errorf("after revocation: %v", err)
	}
	// Two that ask for one id at once: the first approved gets it.
	a, b := newGadget("tab"), newGadget("tab")
	ra, _ := w.Register(t.Context(), "p", a.registration())
	rb, _ := w.Register(t.Context(), "p", b.registration())
	if _, err := w.Approve(t.Context(), auth.LocalOwner, "tab", nil); !errors.Is(err, auth.ErrBadRequest) {
		t.Errorf("an ambiguous approval: %v", err)
	}
	if _, err := w.Approve(t.Context(), auth.LocalOwner, ra.RequestID, auth.DefaultScopes()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Approve(t.Context(), auth.LocalOwner, rb.RequestID, auth.DefaultScopes()); !errors.Is(err, auth.ErrConflict) {
		t.Errorf("the second: %v", err)
	}
	// Many with one code at once: one gets in.
	inv, _ = w.Invite(t.Context(), auth.LocalOwner, "", auth.DefaultScopes())
	var wg sync.WaitGroup
	var in sync.Map
	for n := range 8 {
		wg.Go(func() {
			r := newGadget(fmt.Sprint("race", n)).registration()
			r.Code = inv.Code
			if _, err := w.Register(t.Context(), "p", r); err == nil {
				in.Store(n, true)
			} else if !errors.Is(err, auth.ErrRefused) {
				t.Errorf("got %v, want error %v", err, auth.ErrRefused)
			}
		})
	}
	wg.Wait()
	count := 0
	in.Range(func(any, any) bool { count++; return true })
	if count != 1 {
		t.Errorf("%d have got in with one code", count)
	}
}

// AU-33: five wrong secrets end a code; it ends by itself after ten minutes.
func TestCodesCannotBeGuessed(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	w.now = func() time.Time { return now }
	try := func(code string) error {
		r := newGadget("guess").registration()
		r.Code = code
		_, err := w.Register(t.Context(), "p", r)
		return err
	}
	wrong := func(code string) string {
		last := code[len(code)-1:]
		if last == "0" {
			return code[:len(code)-1] + "1"
		}
		return code[:len(code)-1] + "0"
	}
	for tries := range 7 {
		inv, err := w.Invite(t.Context(), auth.LocalOwner, "", auth.DefaultScopes())
		if err != nil {
			t.Fatal(err)
		}
		for range tries {
			if err := try(wrong(inv.Code)); !errors.Is(err, auth.ErrRefused) {
				t.Errorf("a wrong code: %v", err)
			}
		}
		if tries == 5 {
			w.restart() // does not make it good again
		}
		r := newGadget(fmt.Sprint("guess", tries)).registration()
		r.Code = inv.Code
		_, err = w.Register(t.Context(), "p", r)
		if good := tries < 5; (err == nil) != good {
			t.Errorf("after %d wrong ones: %v", tries, err)
		}
	}
	for _, age := range []time.Duration{10*time.Minute - time.Second, 10 * time.Minute} {
		inv, _ := w.Invite(t.Context(), auth.LocalOwner, "", auth.DefaultScopes())
		now = now.Add(age)
		r := newGadget(fmt.Sprint("late", age.Seconds())).registration()
		r.Code = inv.Code
		_, err := w.Register(t.Context(), "p", r)
		if good := age < 10*time.Minute; (err == nil) != good {
			t.Errorf("after %v: %v", age, err)
		}
	}
	for _, code := range []string{"-", "ABCD", strings.Repeat("A", 64<<10), "AAAA-AAAA-AAAA", "ÄÖÜ"} {
		if err := try(code); !errors.Is(err, auth.ErrRefused) {
			t.Errorf("code %.20q: %v", code, err)
		}
	}
}

// AU-30, SEC-9: 32 requests wait, 8 of one peer, and go after ten minutes; whoever
// fills the places gives one up to a newcomer.
func TestPendingIsBounded(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	w.now = func() time.Time { return now }
	pending := func() (ids []string) {
		infos, err := w.Devices(auth.LocalOwner)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range infos {
			if i.Status == "pending" {
				ids = append(ids, i.ID)
			}
		}
		return ids
	}
	for n := range 200 { // of 8 networks, each of them with many addresses
		now = now.Add(time.Millisecond)
		_, err := w.Register(t.Context(), fmt.Sprintf("2001:db8:0:%d::%d", n%8, n), newGadget(fmt.Sprint("d", n)).registration())
		if err != nil && !errors.Is(err, auth.ErrBusy) {
			t.Fatalf("Register = %v, want no error, or %v", err, auth.ErrBusy)
		}
	}
	if n := len(pending()); n != 32 {
		t.Errorf("%d requests wait, want 32", n)
	}
	for n := range 3 { // newcomers
		now = now.Add(time.Millisecond)
		id := fmt.Sprint("new", n)
		if _, err := w.Register(t.Context(), fmt.Sprintf("192.0.2.%d", n), newGadget(id).registration()); err != nil {
			t.Errorf("newcomer %d among the requests of others: %v", n, err)
		}
		if got := pending(); len(got) != 32 || !slices.Contains(got, id) {
			t.Errorf("%d requests wait (%v), want 32 and %q among them", len(got), got, id)
		}
	}
	if got := pending(); slices.Contains(got, "d0") {
		t.Error("the oldest request of the party that has most is still there")
	}
	now = now.Add(10*time.Minute + time.Second)
	for n := range 9 {
		_, err := w.Register(t.Context(), "one", newGadget(fmt.Sprint("e", n)).registration())
		if good := n < 8; (err == nil) != good {
			t.Errorf("request %d of one peer: %v", n+1, err)
		}
	}
}

// AU-36, AU-37, R7: nobody gives away more than it has, approves itself, or does
// what its scopes do not say, whatever the way.
func TestRightsAreNeverExceeded(t *testing.T) {
	w := newWorld(t)
	admin := w.principal(w.enroll(newGadget("admin"), auth.AllScopes()...))
	helper := w.principal(w.enroll(newGadget("helper"), auth.DevicesApprove, auth.AgentsRead))
	plain := w.principal(w.enroll(newGadget("plain")))
	waiting := func(id string) string {
		r, err := w.Register(t.Context(), "p", newGadget(id).registration())
		if err != nil {
			t.Fatal(err)
		}
		return r.RequestID
	}
	forbidden := func(name string, err error) {
		t.Helper()
		if !errors.Is(err, auth.ErrForbidden) {
			t.Errorf("%s: got %v, want error %v", name, err, auth.ErrForbidden)
		}
	}
	ctx := t.Context()
	for name, p := range map[string]auth.Principal{"plain": plain, "nobody": {}, "external": {Kind: auth.External, ID: "iss|sub"}} {
		_, err := w.Approve(ctx, p, waiting("x-"+name), nil)
		forbidden(name+" approves", err)
		_, err = w.Invite(ctx, p, "", nil)
		forbidden(name+" invites", err)
		forbidden(name+" rejects", w.Reject(p, "x"))
		forbidden(name+" revokes", w.Revoke(ctx, p, "admin", ""))
		forbidden(name+" changes scopes", w.SetScopes(ctx, p, "plain", nil))
		_, err = w.RotateKeys(ctx, p, false)
		forbidden(name+" rotates", err)
		_, err = w.Devices(p)
		forbidden(name+" lists", err)
	}
	_, err := w.Approve(ctx, helper, waiting("y"), []auth.Scope{auth.AgentsRead, auth.ConfigWrite})
	forbidden("more than the approver has", err)
	_, err = w.Invite(ctx, helper, "", []auth.Scope{auth.ConfigWrite})
	forbidden("an invitation to more", err)
	if _, err := w.Approve(ctx, helper, waiting("y"), []auth.Scope{auth.AgentsRead}); err != nil {
		t.Errorf("what it has: %v", err)
	}
	forbidden("its own rights", w.SetScopes(ctx, admin, "admin", []auth.Scope{auth.AgentsRead}))
	// A device that was revoked asks again and approves itself with an old principal.
	g := newGadget("self")
	self := w.principal(w.enroll(g, auth.AllScopes()...))
	if err := w.Revoke(ctx, auth.LocalOwner, "self", ""); err != nil {
		t.Fatal(err)
	}
	r, err := w.Register(ctx, "p", g.registration())
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Approve(ctx, self, r.RequestID, nil)
	forbidden("a revoked device", err)
	// AU-13, R2: scopes that are cut are cut at once, also for tokens that are out.
	if err := auth.Allow(plain, auth.SessionsWrite); err != nil {
		t.Fatal(err)
	}
	if err := w.SetScopes(ctx, admin, "plain", []auth.Scope{auth.AgentsRead}); err != nil {
		t.Fatal(err)
	}
	forbidden("a right that was taken", auth.Allow(plain, auth.SessionsWrite))
	if err := auth.Allow(plain, auth.AgentsRead); err != nil {
		t.Errorf("Allow(%s) after the cut = %v, want nil", auth.AgentsRead, err)
	}
}

// mint makes a token of any kind with a key.
func mint(t *testing.T, method jwt.SigningMethod, key any, header, claims map[string]any) string {
	t.Helper()
	tok := jwt.NewWithClaims(method, jwt.MapClaims(claims))
	for k, v := range header {
		if v == nil {
			delete(tok.Header, k)
		} else {
			tok.Header[k] = v
		}
	}
	s, err := tok.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// W-16, AU-01…AU-08, AU-10: exactly the tokens that this instance issues are good.
func TestForeignTokens(t *testing.T) {
	w := newWorld(t)
	g := newGadget("phone")
	good := w.enroll(g)
	key := rsaKeys(w.made - 1)
	claims := func(change ...any) map[string]any {
		var c map[string]any
		raw, _ := base64.RawURLEncoding.DecodeString(strings.Split(good.Token, ".")[1])
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(change); i += 2 {
			if change[i+1] == nil {
				delete(c, change[i].(string))
			} else {
				c[change[i].(string)] = change[i+1]
			}
		}
		return c
	}
	tok, _, err := jwt.NewParser().ParseUnverified(good.Token, jwt.MapClaims{})
	if err != nil {
		t.Fatal(err)
	}
	kid := tok.Header["kid"]
	h := func(change ...any) map[string]any {
		m := map[string]any{"kid": kid, "typ": "yaya-device+jwt"}
		for i := 0; i < len(change); i += 2 {
			m[change[i].(string)] = change[i+1]
		}
		return m
	}
	rs := jwt.SigningMethodRS256
	der, _ := x509.MarshalPKIXPublicKey(&key.PublicKey)
	pemKey := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	none := func(alg string) string {
		seg := func(v any) string { b, _ := json.Marshal(v); return base64.RawURLEncoding.EncodeToString(b) }
		hd := h()
		hd["alg"] = alg
		return seg(hd) + "." + seg(claims()) + "."
	}
	if _, err := w.VerifyToken(mint(t, rs, key, h(), claims())); err != nil {
		t.Fatalf("a copy of the good one is refused, so this test shows nothing: %v", err)
	}
	now := time.Now().Unix()
	parts := strings.Split(good.Token, ".")
	sig, _ := base64.RawURLEncoding.DecodeString(parts[2])
	sig[10] ^= 1
	otherKey := rsaKeys(9)
	for name, token := range map[string]string{
		"none": none("none"), "None": none("None"), "nOnE": none("nOnE"), "no alg": none(""),
		"hs256 pem":      mint(t, jwt.SigningMethodHS256, pemKey, h(), claims()),
		"hs256 pem + lf": mint(t, jwt.SigningMethodHS256, append(pemKey, '\n'), h(), claims()),
		"hs384 der":      mint(t, jwt.SigningMethodHS384, der, h(), claims()),
		"hs512 modulus":  mint(t, jwt.SigningMethodHS512, key.N.Bytes(), h(), claims()),
		"rs384":          mint(t, jwt.SigningMethodRS384, key, h(), claims()),
		"rs512":          mint(t, jwt.SigningMethodRS512, key, h(), claims()),
		"ps256":          mint(t, jwt.SigningMethodPS256, key, h(), claims()),
		"bad signature":  parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(sig),
		"other key":      mint(t, rs, otherKey, h(), claims()),
		"kid path":       mint(t, rs, key, h("kid", "../../../../dev/null"), claims()),
		"kid sql":        mint(t, rs, key, h("kid", "' OR 1=1"), claims()),
		"kid long":       mint(t, rs, key, h("kid", strings.Repeat("k", 64<<10)), claims()),
		"kid missing":    mint(t, rs, key, h("kid", nil), claims()),
		"kid number":     mint(t, rs, key, h("kid", 7), claims()),
		"jwk":            mint(t, rs, otherKey, h("kid", "mine", "jwk", map[string]any{"kty": "RSA", "n": base64.RawURLEncoding.EncodeToString(otherKey.N.Bytes()), "e": "AQAB"}), claims()),
		"jku":            mint(t, rs, otherKey, h("kid", "mine", "jku", "http://127.0.0.1:1/keys"), claims()),
		"crit":           mint(t, rs, key, h("crit", []string{"x"}), claims()),
		"typ JWT":        mint(t, rs, key, h("typ", "JWT"), claims()),
		"no typ":         mint(t, rs, key, h("typ", nil), claims()),
		"no exp":         mint(t, rs, key, h(), claims("exp", nil)),
		"exp 9999":       mint(t, rs, key, h(), claims("exp", 253402300799)),
		"25 hours":       mint(t, rs, key, h(), claims("exp", now+25*3600)),
		"expired":        mint(t, rs, key, h(), claims("iat", now-7200, "nbf", now-7200, "exp", now-120)),
		"nbf ahead":      mint(t, rs, key, h(), claims("nbf", now+600)),
		"iat ahead":      mint(t, rs, key, h(), claims("iat", now+600, "exp", now+3600)),
		"no iat":         mint(t, rs, key, h(), claims("iat", nil)),
		"no nbf":         mint(t, rs, key, h(), claims("nbf", nil)),
		"no aud":         mint(t, rs, key, h(), claims("aud", nil)),
		"other aud":      mint(t, rs, key, h(), claims("aud", "urn:yaya:other")),
		"aud slash":      mint(t, rs, key, h(), claims("aud", claims()["iss"].(string)+"/")),
		"aud case":       mint(t, rs, key, h(), claims("aud", strings.ToUpper(claims()["iss"].(string)))),
		"two auds":       mint(t, rs, key, h(), claims("aud", []string{claims()["iss"].(string), "other"})),
		"no iss":         mint(t, rs, key, h(), claims("iss", nil)),
		"other iss":      mint(t, rs, key, h(), claims("iss", "urn:yaya:other")),
		"no sub":         mint(t, rs, key, h(), claims("sub", nil)),
		"other sub":      mint(t, rs, key, h(), claims("sub", "tablet")),
		"no jti":         mint(t, rs, key, h(), claims("jti", nil)),
		"other family":   mint(t, rs, key, h(), claims("fam", "other")),
		"other fpr":      mint(t, rs, key, h(), claims("fpr", strings.Repeat("0", 64))),
		"empty":          "",
		"dots":           strings.Repeat(".", 1<<20),
		"two parts":      parts[0] + "." + parts[1],
		"padded":         good.Token + "=",
		"blank":          good.Token + " ",
	} {
		if p, err := w.VerifyToken(token); !errors.Is(err, auth.ErrToken) {
			t.Errorf("%s: got %+v, %v, want error %v", name, p, err, auth.ErrToken)
		}
	}
	// AU-08: within the leeway of a minute, an expired one is still good.
	if _, err := w.VerifyToken(mint(t, rs, key, h(), claims("iat", now-3600, "nbf", now-3600, "exp", now-30))); err != nil {
		t.Errorf("expired for 30 s: %v", err)
	}
	// AU-07: another instance with the same signing key.
	other := newWorld(t)
	other.made = w.made - 1
	other.enroll(g)
	if _, err := other.VerifyToken(good.Token); !errors.Is(err, auth.ErrToken) {
		t.Errorf("another instance takes it: %v", err)
	}
	// AU-35: scopes that a token claims are not those that the device has.
	p, err := w.VerifyToken(mint(t, rs, key, h(), claims("scope", "config:write")))
	if err != nil || !errors.Is(auth.Allow(p, auth.ConfigWrite), auth.ErrForbidden) {
		t.Errorf("claimed scopes: %v", err)
	}
}

// W-11, W-12, W-15, AU-22, AU-24, W-76: a challenge is fresh, for one connection,
// one time, ten seconds.
func TestChallenge(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	w.now = func() time.Time { return now }
	g := newGadget("phone")
	tok := w.enroll(g)
	const url = "wss://yaya.example/ws"
	answer := func(c *auth.Challenge) []byte {
		sig, server, err := auth.SignChallenge(g.key, c.Bytes(), url, w.ServerID())
		if err != nil || server != w.ServerID() || len(sig) != 64 {
			t.Fatalf("SignChallenge = a signature of %d bytes for %q, %v, want 64 bytes for %q", len(sig), server, err, w.ServerID())
		}
		return sig
	}
	c := w.NewChallenge(url)
	sig := answer(c)
	if !ed25519.Verify(g.key.Public().(ed25519.PublicKey), c.Bytes(), sig) {
		t.Error("the signature is not over the bytes as they are")
	}
	other := w.NewChallenge(url)
	if string(other.Bytes()) == string(c.Bytes()) {
		t.Error("two challenges are the same")
	}
	if p, err := w.Prove(c, tok.Token, sig); err != nil || p.ID != "phone" {
		t.Fatalf(`got %v, %v, want ID "phone"`, p, err)
	}
	refused := func(name string, c *auth.Challenge, token string, sig []byte) {
		t.Helper()
		if p, err := w.Prove(c, token, sig); !errors.Is(err, auth.ErrToken) {
			t.Errorf("%s: got %+v, %v, want error %v", name, p, err, auth.ErrToken)
		}
	}
	refused("twice", c, tok.Token, sig)
	refused("another connection's", other, tok.Token, sig)
	refused("after a failure", other, tok.Token, answer(other))
	for _, n := range []int{0, 63, 65, 64 << 10} {
		refused(fmt.Sprint(n, " bytes"), w.NewChallenge(url), tok.Token, make([]byte, n))
	}
	bad := w.NewChallenge(url)
	refused("no token", bad, "", answer(bad))
	refused("after no token", bad, tok.Token, answer(bad))
	thief := newGadget("thief")
	c = w.NewChallenge(url)
	sig, _, _ = auth.SignChallenge(thief.key, c.Bytes(), url, "")
	refused("another key", c, tok.Token, sig)
	// AU-21: S + L is another encoding of the same signature.
	c = w.NewChallenge(url)
	sig = answer(c)
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	s := slices.Clone(sig[32:])
	slices.Reverse(s)
	big2 := new(big.Int).Add(new(big.Int).SetBytes(s), order).FillBytes(make([]byte, 32))
	slices.Reverse(big2)
	refused("S + L", c, tok.Token, append(slices.Clone(sig[:32]), big2...))
	for _, age := range []time.Duration{10 * time.Second, 10*time.Second + time.Millisecond} {
		c = w.NewChallenge(url)
		sig = answer(c)
		now = now.Add(age)
		_, err := w.Prove(c, tok.Token, sig)
		if good := age == 10*time.Second; (err == nil) != good {
			t.Errorf("after %v: %v", age, err)
		}
	}
	// R3: a client does not sign for another server, audience or purpose.
	c = w.NewChallenge(url)
	for name, try := range map[string]func() error{
		"audience": func() error {
			_, _, err := auth.SignChallenge(g.key, c.Bytes(), "wss://evil.example/ws", "")
			return err
		},
		"server": func() error { _, _, err := auth.SignChallenge(g.key, c.Bytes(), url, "pinned"); return err },
		"nonce":  func() error { _, _, err := auth.SignChallenge(g.key, make([]byte, 32), url, ""); return err },
		"cut":    func() error { _, _, err := auth.SignChallenge(g.key, c.Bytes()[:50], url, ""); return err },
		"empty":  func() error { _, _, err := auth.SignChallenge(g.key, nil, url, ""); return err },
		"purpose": func() error {
			b := c.Bytes()
			b[10] ^= 1
			_, _, err := auth.SignChallenge(g.key, b, url, "")
			return err
		},
	} {
		if err := try(); !errors.Is(err, auth.ErrOtherServer) {
			t.Errorf("%s: got %v, want error %v", name, err, auth.ErrOtherServer)
		}
	}
}

// W-17, AU-11, AU-13: a token is refreshed once; a second time ends its family.
func TestRefresh(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	w.now = func() time.Time { return now }
	g := newGadget("phone")
	first := w.enroll(g)
	elsewhere := w.enrollAgain(g)
	second, err := w.Refresh(t.Context(), first.Token)
	if err != nil || second.Token == first.Token {
		t.Fatalf("got %v, want Token not %v", err, first.Token)
	}
	w.principal(first) // goes on until it expires
	w.restart()
	third, err := w.Refresh(t.Context(), second.Token)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Refresh(t.Context(), first.Token); !errors.Is(err, auth.ErrToken) {
		t.Errorf("a second time: %v", err)
	}
	for name, tok := range map[string]auth.Token{"first": first, "second": second, "third": third} {
		if _, err := w.VerifyToken(tok.Token); !errors.Is(err, auth.ErrToken) {
			t.Errorf("%s: got %v, want error %v", name, err, auth.ErrToken)
		}
	}
	if ev := w.events(); ev[len(ev)-1] != "device_family_revoked" {
		t.Errorf("the log has %v", ev)
	}
	w.principal(elsewhere) // another family
	for name, tok := range map[string]string{"garbage": "a.b.c", "none": ""} {
		if _, err := w.Refresh(t.Context(), tok); !errors.Is(err, auth.ErrToken) {
			t.Errorf("%s: got %v, want error %v", name, err, auth.ErrToken)
		}
	}
	now = elsewhere.ExpiresAt // the leeway is for clocks, not for refreshing
	if _, err := w.Refresh(t.Context(), elsewhere.Token); !errors.Is(err, auth.ErrToken) {
		t.Errorf("an expired one: %v", err)
	}
}

// enrollAgain gets a token for a known device by its proof.
func (w *world) enrollAgain(g gadget) auth.Token {
	w.t.Helper()
	r := g.registration()
	got, err := w.Register(w.t.Context(), "p", r)
	if err != nil {
		w.t.Fatal(err)
	}
	r.RequestID = got.RequestID
	r.Proof = base64.StdEncoding.EncodeToString(auth.SignRegistration(g.key, w.ServerID(), got.RequestID, g.id))
	if got, err = w.Register(w.t.Context(), "p", r); err != nil {
		w.t.Fatal(err)
	}
	return got.Token
}

// AU-15, AU-16, AU-18, R2: revocation is durable and ends what is open; so does
// the end of the token.
func TestRevocation(t *testing.T) {
	w := newWorld(t)
	g := newGadget("phone")
	tok := w.enroll(g)
	p := w.principal(tok)
	ended := make(chan error, 10)
	release := w.Hold(p, func(err error) { ended <- err })
	defer release()
	w.Hold(p, func(error) { t.Error("a hold that was released has ended") })()
	infos, _ := w.Devices(auth.LocalOwner)
	if infos[0].Connections != 1 {
		t.Errorf("got %+v, want infos[0].Connections 1", infos)
	}
	if err := w.Revoke(t.Context(), auth.LocalOwner, "phone", "lost"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, auth.ErrEnded) || !errors.Is(err, auth.ErrToken) {
			t.Errorf("got %v, want error %v, error %v", err, auth.ErrEnded, auth.ErrToken)
		}
	default:
		t.Fatal("Revoke has returned, and the connection goes on")
	}
	check := func() {
		t.Helper()
		if _, err := w.VerifyToken(tok.Token); !errors.Is(err, auth.ErrToken) {
			t.Errorf("a revoked device: %v", err)
		}
		if _, err := w.Refresh(t.Context(), tok.Token); !errors.Is(err, auth.ErrToken) {
			t.Errorf("it refreshes: %v", err)
		}
		if err := auth.Allow(p, auth.AgentsRead); !errors.Is(err, auth.ErrForbidden) {
			t.Errorf("it may: %v", err)
		}
		w.Hold(p, func(err error) { ended <- err })
		if len(ended) != 1 {
			t.Error("it can be held")
		}
		for len(ended) > 0 {
			<-ended
		}
	}
	check()
	w.restart()
	check()
	if err := w.Revoke(t.Context(), auth.LocalOwner, "nobody", ""); !errors.Is(err, auth.ErrNotFound) {
		t.Errorf("an unknown device: %v", err)
	}
	// A new invitation enrolls it again, but its old token stays invalid.
	again := w.enroll(g)
	w.principal(again)
	if _, err := w.VerifyToken(tok.Token); !errors.Is(err, auth.ErrToken) {
		t.Errorf("the old token: %v", err)
	}
}

// AU-18: a hold ends with its token.
func TestHoldsEndWithTheToken(t *testing.T) {
	rsaKeys(0) // not in the bubble
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		tok := w.enroll(newGadget("phone"))
		ended := make(chan time.Time, 1)
		release := w.Hold(w.principal(tok), func(error) { ended <- time.Now() })
		defer release()
		time.Sleep(24*time.Hour - time.Second)
		if len(ended) > 0 {
			t.Fatal("it has ended early")
		}
		if d := (<-ended).Sub(tok.ExpiresAt); d < 0 || d > time.Second {
			t.Errorf("it ended %v after the token", d)
		}
	})
}

// AU-17: after rotation new tokens are signed with another key; the old ones are
// good until they expire, or no longer if that is what was asked for.
func TestRotation(t *testing.T) {
	w := newWorld(t)
	g := newGadget("phone")
	old := w.enroll(g)
	ended := make(chan error, 1)
	defer w.Hold(w.principal(old), func(err error) { ended <- err })()
	if _, err := w.RotateKeys(t.Context(), auth.LocalOwner, false); err != nil {
		t.Fatal(err)
	}
	w.principal(old)
	if len(ended) != 0 {
		t.Error("ordinary rotation ends connections")
	}
	next, err := w.Refresh(t.Context(), old.Token)
	if err != nil {
		t.Fatal(err)
	}
	kid := func(tok auth.Token) any {
		p, _, err := jwt.NewParser().ParseUnverified(tok.Token, jwt.MapClaims{})
		if err != nil {
			t.Fatal(err)
		}
		return p.Header["kid"]
	}
	if kid(next) == kid(old) {
		t.Error("the new key does not sign")
	}
	if n := strings.Count(string(w.JWKS()), `"kid"`); n != 2 {
		t.Errorf("%d keys are published", n)
	}
	w.restart()
	w.principal(old)
	w.principal(next)
	if files, _ := filepath.Glob(filepath.Join(w.dir, "keys", "token-*")); len(files) != 1 {
		t.Errorf("private keys: %v", files)
	}
	ended = make(chan error, 1)
	defer w.Hold(w.principal(next), func(err error) { ended <- err })()
	if _, err := w.RotateKeys(t.Context(), auth.LocalOwner, true); err != nil {
		t.Fatal(err)
	}
	if len(ended) != 1 {
		t.Error("the connection goes on with a token of a dropped key")
	}
	for _, tok := range []auth.Token{old, next} {
		if _, err := w.VerifyToken(tok.Token); !errors.Is(err, auth.ErrToken) {
			t.Errorf("a token of a dropped key: %v", err)
		}
	}
	w.principal(w.enrollAgain(g))
	if n := strings.Count(string(w.JWKS()), `"kid"`); n != 1 {
		t.Errorf("%d keys are published", n)
	}
}

// node opens an authority that has a folder of its own, and shares identity and log with others.
func (w *world) node(name, dir string, first int, now func() time.Time) *auth.Authority {
	w.t.Helper()
	keys := filepath.Join(dir, name)
	if err := os.MkdirAll(keys, 0o700); err != nil {
		w.t.Fatal(err)
	}
	identity, err := os.ReadFile(filepath.Join(w.dir, "keys", auth.ServerKeyFile))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(keys, auth.ServerKeyFile), identity, 0o600); err != nil {
		w.t.Fatal(err)
	}
	root, err := os.OpenRoot(keys)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { root.Close() })
	a, err := auth.NewAuthority(auth.AuthorityConfig{Keys: root, Known: true, Node: name, Now: now, GenerateKey: func() (*rsa.PrivateKey, error) {
		defer func() { first++ }()
		return rsaKeys(first), nil
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// AU-42: nodes that share a log sign with a key each, and verify each other's tokens. A
// rotation on one of them is one on all.
func TestNodesHaveTheirOwnKeys(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	g := newGadget("phone")
	before := w.enroll(g)
	w.log.Close()
	north, south := w.node("north", dir, 1, time.Now), w.node("south", dir, 3, time.Now)
	var err error
	w.log, err = local.Open(journal.Root(w.root), local.Options{Projections: []control.Projection{north, south}})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []*auth.Authority{north, south} {
		if err := a.Start(w.log); err != nil {
			t.Fatal(err)
		}
	}
	keys := map[any]bool{}
	token := before
	refresh := func(a *auth.Authority) {
		t.Helper()
		if token, err = a.Refresh(t.Context(), token.Token); err != nil {
			t.Fatal(err)
		}
		p, _, err := jwt.NewParser().ParseUnverified(token.Token, jwt.MapClaims{})
		if err != nil {
			t.Fatal(err)
		}
		keys[p.Header["kid"]] = true
		for _, a := range []*auth.Authority{north, south} {
			if _, err := a.VerifyToken(token.Token); err != nil {
				t.Errorf("a token of another node is refused: %v", err)
			}
		}
	}
	for range 3 {
		refresh(north)
		refresh(south)
	}
	if len(keys) != 2 {
		t.Errorf("two nodes signed with %d keys, want 2", len(keys))
	}
	if _, err := north.RotateKeys(t.Context(), auth.LocalOwner, false); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		refresh(south)
		refresh(north)
	}
	if len(keys) != 4 {
		t.Errorf("after a rotation they signed with %d keys, want 4", len(keys))
	}
	for _, name := range []string{"north", "south"} {
		if files, err := filepath.Glob(filepath.Join(dir, name, "token-*")); err != nil || len(files) != 1 {
			t.Errorf("%s keeps %v (%v), want one key that signs", name, files, err)
		}
	}
	if _, err := south.RotateKeys(t.Context(), auth.LocalOwner, true); err != nil {
		t.Fatal(err)
	}
	for _, a := range []*auth.Authority{north, south} {
		if _, err := a.VerifyToken(token.Token); !errors.Is(err, auth.ErrToken) {
			t.Errorf("a token of a dropped key: %v", err)
		}
	}
}

// AU-42, OP-26: without its file, the key that signs is replaced when the next token is made;
// earlier tokens stay valid until they expire.
func TestMissingTokenKey(t *testing.T) {
	w := newWorld(t)
	old := w.enroll(newGadget("phone"))
	files, err := filepath.Glob(filepath.Join(w.dir, "keys", "token-*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("got %v, %v, want one key", files, err)
	}
	w.close()
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.principal(old)
	w.principal(w.enroll(newGadget("tablet")))
	next, err := w.Refresh(t.Context(), old.Token)
	if err != nil {
		t.Fatalf("Refresh without the file of the key that signed: %v", err)
	}
	w.principal(next)
	if now, err := filepath.Glob(filepath.Join(w.dir, "keys", "token-*")); err != nil || len(now) != 1 || now[0] == files[0] {
		t.Errorf("the keys are %v, %v, want another one", now, err)
	}
	w.restart()
	w.principal(old)
	w.principal(next)
}

// AU-42, R8, R11: keys are made per instance, are their owner's alone, and are
// refused when they are not.
func TestKeyFiles(t *testing.T) {
	one, two := newWorld(t), newWorld(t)
	one.enroll(newGadget("g"))
	if one.ServerID() == two.ServerID() {
		t.Error("two instances have one key")
	}
	id := one.ServerID()
	one.restart()
	if one.ServerID() != id {
		t.Error("the key changes")
	}
	dir := filepath.Join(one.dir, "keys")
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(files) != 2 {
		t.Fatalf("got %v, want len(files) 2", files)
	}
	for _, f := range files {
		if st, err := os.Stat(f); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: got %v, %v, want Perm 0o600", f, st.Mode(), err)
		}
	}
	one.close()
	small, _ := rsa.GenerateKey(rand.Reader, 1024)
	write := func(key crypto.PrivateKey) func(string) error {
		return func(f string) error {
			der, err := x509.MarshalPKCS8PrivateKey(key)
			if err != nil {
				return err
			}
			return os.WriteFile(f, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
		}
	}
	for _, f := range files {
		whole, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for name, spoil := range map[string]func(f string) error{
			"0644":      func(f string) error { return os.Chmod(f, 0o644) },
			"0640":      func(f string) error { return os.Chmod(f, 0o640) },
			"link":      func(f string) error { return errors.Join(os.Rename(f, f+".x"), os.Symlink(f+".x", f)) },
			"truncated": func(f string) error { return os.WriteFile(f, whole[:100], 0o600) },
			"empty":     func(f string) error { return os.WriteFile(f, nil, 0o600) },
			"twice":     func(f string) error { return os.WriteFile(f, append(whole, whole...), 0o600) },
			"1024 bits": write(small),
			"folder":    func(f string) error { return errors.Join(os.Remove(f), os.Mkdir(f, 0o700)) },
		} {
			if err := spoil(f); err != nil {
				t.Fatal(err)
			}
			if err := one.try(); err == nil || !strings.Contains(err.Error(), filepath.Base(f)) {
				t.Errorf("%s: got %v, want an error that names %s", name, err, filepath.Base(f))
			}
			one.close()
			one.log = nil
			if err := errors.Join(os.RemoveAll(f), os.RemoveAll(f+".x"), os.WriteFile(f, whole, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if strings.HasPrefix(filepath.Base(f), "token-") {
			if err := write(rsaKeys(8))(f); err != nil {
				t.Fatal(err)
			}
			if err := one.try(); err == nil || !strings.Contains(err.Error(), "another key") || !strings.Contains(err.Error(), "move the file away") {
				t.Errorf("with another key of that name: got %v, want it refused, and what to do", err)
			}
			one.close()
			one.log = nil
			if err := os.WriteFile(f, whole, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := one.try(); err == nil {
		t.Error("a folder that others can look into")
	}
	one.close()
	one.log = nil
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := one.try(); err != nil {
		t.Errorf("as it was: %v", err)
	}
}

// R30: when the log cannot be written nothing is given.
func TestFailsClosed(t *testing.T) {
	w := newWorld(t)
	g := newGadget("phone")
	tok := w.enroll(g)
	req, err := w.Register(t.Context(), "p", newGadget("other").registration())
	if err != nil {
		t.Fatal(err)
	}
	w.log.Close()
	ctx := t.Context()
	for name, try := range map[string]func() error{
		"invite":  func() error { _, err := w.Invite(ctx, auth.LocalOwner, "", nil); return err },
		"approve": func() error { _, err := w.Approve(ctx, auth.LocalOwner, req.RequestID, nil); return err },
		"revoke":  func() error { return w.Revoke(ctx, auth.LocalOwner, "phone", "") },
		"scopes":  func() error { return w.SetScopes(ctx, auth.LocalOwner, "phone", nil) },
		"refresh": func() error { _, err := w.Refresh(ctx, tok.Token); return err },
		"rotate":  func() error { _, err := w.RotateKeys(ctx, auth.LocalOwner, false); return err },
	} {
		if err := try(); !errors.Is(err, control.ErrUnavailable) {
			t.Errorf("%s: got %v, want error %v", name, err, control.ErrUnavailable)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(w.dir, "keys", "token-*")); len(files) != 1 {
		t.Errorf("a key that nobody knows was left: %v", files)
	}
	w.principal(tok) // reading goes on
}

func TestParseScopes(t *testing.T) {
	got, err := auth.ParseScopes("default", "agents:read,tools:call")
	if err != nil || !slices.Equal(got, []auth.Scope{"agents:read", "memory:read", "sessions:read", "sessions:write", "tools:call"}) {
		t.Errorf("ParseScopes of default and two scopes = %v, %v, want both without doubles, sorted", got, err)
	}
	if got, err = auth.ParseScopes("admin"); err != nil || len(got) != len(auth.AllScopes()) {
		t.Errorf("ParseScopes of admin = %v, %v, want all %d scopes", got, err, len(auth.AllScopes()))
	}
	if _, err = auth.ParseScopes("agents:everything"); !errors.Is(err, auth.ErrBadRequest) || !strings.Contains(err.Error(), "tools:call") {
		t.Errorf(`got %v, want error %v, err with "tools:call"`, err, auth.ErrBadRequest)
	}
}
