package auth

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	mrand "math/rand/v2"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/control"
)

// OP-30: a restored authority has the state that the same entries lead to, wherever they are
// cut in two.
func TestStateIsWhatTheEntriesLedTo(t *testing.T) {
	r := mrand.New(mrand.NewPCG(1, 30))
	entries := history(t, r, 400)
	whole := NewCensus()
	states := []json.RawMessage{save(t, whole)}
	for _, e := range entries {
		if err := whole.Apply(e); err != nil {
			t.Fatalf("entry %d (%s): %v", e.Index, e.Event, err)
		}
		states = append(states, save(t, whole))
	}
	for cut := 0; cut <= len(entries); cut += 7 {
		a := NewCensus()
		if err := a.Restore(states[cut]); err != nil {
			t.Fatalf("after %d entries: %v", cut, err)
		}
		for _, e := range entries[cut:] {
			if err := a.Apply(e); err != nil {
				t.Fatalf("entry %d (%s) after a restore at %d: %v", e.Index, e.Event, cut, err)
			}
		}
		if got, want := canon(t, save(t, a)), canon(t, save(t, whole)); got != want {
			t.Fatalf("restored after %d entries, it leads to\n%s\nwant\n%s", cut, got, want)
		}
		if a.Enrolled() != whole.Enrolled() || a.lastingNamed("t1") != nil != (whole.lastingNamed("t1") != nil) {
			t.Fatalf("restored after %d entries, others are enrolled", cut)
		}
	}
	if err := NewCensus().Restore(json.RawMessage(`{"keys":{"k":{"public_key":"AA=="}}}`)); err == nil {
		t.Error("an invalid key was restored")
	}
}

func save(t *testing.T, a *Authority) json.RawMessage {
	t.Helper()
	state, err := a.Save()
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// canon is a state with its tokens in one order.
func canon(t *testing.T, state json.RawMessage) string {
	t.Helper()
	var s struct {
		savedState
		Lasting map[string]savedLasting `json:"lasting"`
	}
	var list struct{ Lasting []savedLasting }
	if err := json.Unmarshal(state, &list); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(state, &s.savedState); err != nil {
		t.Fatal(err)
	}
	s.Lasting = map[string]savedLasting{}
	for _, l := range list.Lasting {
		s.Lasting[l.Name] = l
	}
	out, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// history makes up entries of all kinds.
func history(t *testing.T, r *mrand.Rand, n int) (out []control.Entry) {
	t.Helper()
	var keys [][]byte
	for range 3 {
		k, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKIXPublicKey(&k.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, der)
	}
	at := time.Now().UTC().Truncate(time.Millisecond).Add(-time.Hour)
	add := func(event, target string, payload any) {
		raw, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Duration(r.IntN(20_000)-1000) * time.Millisecond)
		out = append(out, control.Entry{Index: int64(len(out) + 1), Term: 1, Time: at, Event: event, Actor: "owner", Target: target, Payload: raw})
	}
	for i := range 4 {
		add(evApproved, fmt.Sprint("d", i), deviceAdded{PublicKey: []byte{byte(i)}, Scopes: []Scope{AgentsRead}, Label: "x", By: "owner"})
	}
	for len(out) < n {
		d, name := fmt.Sprint("d", r.IntN(4)), fmt.Sprint("t", r.IntN(5))
		sum := sha256.Sum256(fmt.Append(nil, len(out)))
		switch r.IntN(10) {
		case 0:
			add(evInvited, fmt.Sprint("i", r.IntN(6)), invited{Hash: sum[:], Label: "l", Scopes: []Scope{AgentsRead}, Expires: at.Add(time.Hour)})
		case 1:
			add(evInviteWithdrawn, fmt.Sprint("i", r.IntN(6)), struct{}{})
		case 2:
			add(evEnrolled, d, deviceAdded{PublicKey: sum[:], Scopes: []Scope{AgentsRead}, Invite: fmt.Sprint("i", r.IntN(6)), By: "owner"})
		case 3:
			add(evScopes, d, scopesChanged{[]Scope{AgentsRead, ToolsCall}[:1+r.IntN(2)]})
		case 4:
			if r.IntN(4) == 0 {
				add(evRevoked, d, revoked{"lost"})
			}
		case 5, 6:
			add(evTokenIssued, d, tokenIssued{Family: fmt.Sprint("f", r.IntN(12)), ID: fmt.Sprint("jti", len(out)), Expires: at.Add(24 * time.Hour), Previous: "p"})
		case 7:
			add(evFamilyRevoked, d, familyRevoked{fmt.Sprint("f", r.IntN(12)), "stolen"})
		case 8:
			if r.IntN(2) == 0 {
				add(evLastingRevoked, name, struct{}{})
			}
			add(evLastingRevoked, name, struct{}{}) // a name is used once at a time
			add(evLastingCreated, name, lastingCreated{Sum: hex.EncodeToString(sum[:]), Scopes: []Scope{ToolsCall}, Servers: []string{"s"}, Expires: at.Add(time.Hour)})
		case 9:
			k := r.IntN(3)
			add(evSigningKey, fmt.Sprint("k", k), signingKeyAdded{KeyID: fmt.Sprint("k", k), PublicKey: keys[k], Drop: r.IntN(3) == 0})
		}
	}
	return out
}
