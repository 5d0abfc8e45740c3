package auth_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/kernel/tool"
)

func (w *world) token(n auth.NewLasting) string {
	w.t.Helper()
	if n.Scopes == nil {
		n.Scopes = []auth.Scope{auth.ToolsCall}
	}
	token, info, err := w.CreateLasting(w.t.Context(), auth.LocalOwner, n)
	if err != nil || info.Name != n.Name || info.Status != "active" {
		w.t.Fatalf("CreateLasting(%+v) = %+v, %v", n, info, err)
	}
	return token
}

// USE-8: a lasting token stands for its name, with its scopes, for its servers, even
// after a restart; and it is nowhere on the disk.
func TestLastingToken(t *testing.T) {
	w := newWorld(t)
	token := w.token(auth.NewLasting{Name: "ci", Servers: []string{"web", "fs", "web"}})
	if !regexp.MustCompile(`^yaya_[0-9A-HJKMNP-TV-Z]{59}$`).MatchString(token) {
		t.Errorf("the token %q is not what scanners look for", token)
	}
	for _, when := range []string{"at once", "after a restart"} {
		p, err := w.VerifyLasting(token)
		if err != nil || p.Name() != "token:ci" || p.Actor() != "token:ci" || !slices.Equal(p.Servers(), []string{"fs", "web"}) {
			t.Errorf("%s: got %v of %v, %v", when, p.Name(), p.Servers(), err)
		}
		if err := auth.Allow(p, auth.ToolsCall); err != nil {
			t.Errorf("%s: Allow(%s) = %v, want nil", when, auth.ToolsCall, err)
		}
		if err := auth.Allow(p, auth.SessionsRead); !errors.Is(err, auth.ErrForbidden) {
			t.Errorf("%s: sessions:read: got %v, want %v", when, err, auth.ErrForbidden)
		}
		w.restart()
	}
	all, err := w.LastingTokens(auth.LocalOwner)
	if err != nil || len(all) != 1 || all[0].CreatedBy != "owner" || !all[0].Expires.IsZero() {
		t.Errorf("got %+v, %v; want one token of owner that never expires", all, err)
	}
	secret := token[len(auth.LastingPrefix):]
	err = filepath.WalkDir(w.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if strings.Contains(string(raw), secret) {
			t.Errorf("%s holds the token", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// USE-8: anything but a token that was made here is refused, whatever it looks
// like, and so is a lasting token where a device's is wanted.
func TestLastingTokenRefused(t *testing.T) {
	w := newWorld(t)
	token := w.token(auth.NewLasting{Name: "ci"})
	swap := func(i int) string {
		b := []byte(token)
		if b[i]++; !strings.ContainsRune("0123456789ABCDEFGHJKMNPQRSTVWXYZ", rune(b[i])) {
			b[i] = '0'
		}
		return string(b)
	}
	other := newWorld(t).token(auth.NewLasting{Name: "ci"})
	for name, bad := range map[string]string{
		"empty": "", "the prefix": auth.LastingPrefix, "wrong secret": swap(9), "wrong checksum": swap(len(token) - 1), "cut": token[:len(token)-1],
		"longer": token + "0", "in lower case": strings.ToLower(token), "another prefix": "yoyo_" + token[5:], "another yaya's": other, "a megabyte": auth.LastingPrefix + strings.Repeat("A", 1<<20),
		"with a line break": token + "\n",
	} {
		if p, err := w.VerifyLasting(bad); !errors.Is(err, auth.ErrToken) || w.KnowsLasting(bad) {
			t.Errorf("%s: got %v, %v, want %v", name, p.Name(), err, auth.ErrToken)
		}
	}
	if _, err := w.VerifyToken(token); !errors.Is(err, auth.ErrToken) {
		t.Errorf("as a device's: got %v, want %v", err, auth.ErrToken)
	}
	if _, err := w.Refresh(t.Context(), token); !errors.Is(err, auth.ErrToken) {
		t.Errorf("refreshed: got %v, want %v", err, auth.ErrToken)
	}
}

// USE-8: only principals with the right make tokens, and of which kinds.
func TestWhoMakesLastingTokens(t *testing.T) {
	w := newWorld(t)
	manager := w.principal(w.enroll(newGadget("phone"), auth.DevicesManage, auth.ToolsCall))
	reader := w.principal(w.enroll(newGadget("tablet"), auth.ToolsCall))
	most := slices.DeleteFunc(auth.AllScopes(), func(s auth.Scope) bool {
		return slices.Contains([]auth.Scope{auth.DevicesApprove, auth.DevicesManage, auth.KernelAttach, auth.SkillsInvoke}, s)
	})
	own, err := w.VerifyLasting(w.token(auth.NewLasting{Name: "admin", Scopes: most}))
	if err != nil {
		t.Fatal(err)
	}
	tools := []auth.Scope{auth.ToolsCall}
	for name, c := range map[string]struct {
		who  auth.Principal
		n    auth.NewLasting
		want error
	}{
		"a device that may":         {manager, auth.NewLasting{Name: "a", Scopes: tools}, nil},
		"with more than it has":     {manager, auth.NewLasting{Name: "b", Scopes: []auth.Scope{auth.ConfigWrite}}, auth.ErrForbidden},
		"a device that may not":     {reader, auth.NewLasting{Name: "c", Scopes: tools}, auth.ErrForbidden},
		"nobody":                    {auth.Principal{}, auth.NewLasting{Name: "d", Scopes: tools}, auth.ErrForbidden},
		"a scope for devices alone": {auth.LocalOwner, auth.NewLasting{Name: "l", Scopes: []auth.Scope{auth.DevicesApprove}}, auth.ErrBadRequest},
		"all scopes":                {auth.LocalOwner, auth.NewLasting{Name: "m", Scopes: auth.AllScopes()}, auth.ErrBadRequest},
		"a token":                   {own, auth.NewLasting{Name: "e", Scopes: tools}, auth.ErrForbidden},
		"a name that there is":      {auth.LocalOwner, auth.NewLasting{Name: "admin", Scopes: tools}, auth.ErrExists},
		"no name":                   {auth.LocalOwner, auth.NewLasting{Scopes: tools}, auth.ErrBadRequest},
		"a name with a star":        {auth.LocalOwner, auth.NewLasting{Name: "a*", Scopes: tools}, auth.ErrBadRequest},
		"a long name":               {auth.LocalOwner, auth.NewLasting{Name: strings.Repeat("x", 65), Scopes: tools}, auth.ErrBadRequest},
		"no scopes":                 {auth.LocalOwner, auth.NewLasting{Name: "f"}, auth.ErrBadRequest},
		"expired":                   {auth.LocalOwner, auth.NewLasting{Name: "g", Scopes: tools, Expires: time.Now().Add(-time.Second)}, auth.ErrBadRequest},
		"in a thousand years":       {auth.LocalOwner, auth.NewLasting{Name: "h", Scopes: tools, Expires: time.Now().AddDate(1000, 0, 0)}, auth.ErrBadRequest},
		"for a server, and more":    {auth.LocalOwner, auth.NewLasting{Name: "i", Scopes: []auth.Scope{auth.SessionsWrite, auth.ToolsCall}, Servers: []string{"fs"}}, auth.ErrBadRequest},
		"for 65 servers":            {auth.LocalOwner, auth.NewLasting{Name: "j", Scopes: tools, Servers: make([]string, 65)}, auth.ErrBadRequest},
		"for a server without name": {auth.LocalOwner, auth.NewLasting{Name: "k", Scopes: tools, Servers: []string{""}}, auth.ErrBadRequest},
	} {
		if _, _, err := w.CreateLasting(t.Context(), c.who, c.n); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if err := w.RevokeLasting(t.Context(), reader, "a"); !errors.Is(err, auth.ErrForbidden) {
		t.Errorf("revoked by a device that may not: %v", err)
	}
	for _, name := range []string{"none", "", "a\x00"} {
		if err := w.RevokeLasting(t.Context(), auth.LocalOwner, name); !errors.Is(err, auth.ErrNotFound) {
			t.Errorf("RevokeLasting(%q) = %v, want %v", name, err, auth.ErrNotFound)
		}
	}
	for i := 2; i < 256; i++ {
		w.token(auth.NewLasting{Name: fmt.Sprint("n", i)})
	}
	if _, _, err := w.CreateLasting(t.Context(), auth.LocalOwner, auth.NewLasting{Name: "more", Scopes: tools}); !errors.Is(err, auth.ErrExists) {
		t.Errorf("the 257th: got %v, want %v", err, auth.ErrExists)
	}
}

// USE-8: revoking a token ends what is under way with it, at once; so does its time.
// The same name given again is another token's.
func TestLastingTokenEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.now = time.Now
		held := func(token string) (auth.Principal, *error) {
			p, err := w.VerifyLasting(token)
			if err != nil {
				t.Fatal(err)
			}
			cause := new(error)
			t.Cleanup(w.Hold(p, func(err error) { *cause = err }))
			return p, cause
		}
		revoked := w.token(auth.NewLasting{Name: "revoked"})
		expiring := w.token(auth.NewLasting{Name: "expiring", Expires: time.Now().Add(time.Hour)})
		lasting := w.token(auth.NewLasting{Name: "lasting"})
		p, end := held(revoked)
		_, expired := held(expiring)
		_, not := held(lasting)
		if err := w.RevokeLasting(t.Context(), auth.LocalOwner, "revoked"); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(*end, auth.ErrEnded) || p.Has(string(auth.ToolsCall)) {
			t.Errorf("revoked: got %v and the scopes %v, want %v", *end, p.Scopes(), auth.ErrEnded)
		}
		if _, err := w.VerifyLasting(revoked); !errors.Is(err, auth.ErrToken) {
			t.Errorf("revoked: got %v, want %v", err, auth.ErrToken)
		}
		w.token(auth.NewLasting{Name: "revoked", Scopes: []auth.Scope{auth.ConfigRead, auth.ToolsCall}})
		if p.Scopes() != nil || w.KnowsLasting(revoked) {
			t.Error("the old token has the rights of the new one")
		}
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		if !errors.Is(*expired, auth.ErrEnded) {
			t.Errorf("expired: got %v, want %v", *expired, auth.ErrEnded)
		}
		if _, err := w.VerifyLasting(expiring); !errors.Is(err, auth.ErrToken) || w.KnowsLasting(expiring) {
			t.Errorf("expired: got %v, want %v", err, auth.ErrToken)
		}
		if *not != nil {
			t.Errorf("a token without an end: %v", *not)
		}
		all, err := w.LastingTokens(auth.LocalOwner)
		if err != nil || len(all) != 3 || all[0].Status != "expired" {
			t.Errorf("got %+v, %v; want 3 tokens, the first of them expired", all, err)
		}
	})
}

// A token that is made again under the name of a revoked one is somebody else: nothing
// that is kept by principal is handed on with a name, even after a restart. Rules and
// profiles that name tokens mean each of the name.
func TestLastingTokensAreUniqueOverTime(t *testing.T) {
	w := newWorld(t)
	seen := map[string]bool{}
	var last string
	for i, want := range []string{"token:ci", "token:ci#2", "token:ci#3"} {
		last = w.token(auth.NewLasting{Name: "ci"})
		for _, when := range []string{"at once", "after a restart"} {
			p, err := w.VerifyLasting(last)
			if err != nil || p.Name() != want || p.Actor() != want {
				t.Errorf("token %d, %s: got %q as actor %q, %v, want %q", i+1, when, p.Name(), p.Actor(), err, want)
			}
			if !tool.MatchPrincipal("token:ci", p.Name()) || !tool.MatchPrincipal("token:c?", p.Name()) || tool.MatchPrincipal("token:ci2", p.Name()) {
				t.Errorf("token %d, %s: rules that name token:ci are not about it", i+1, when)
			}
			seen[p.Name()] = true
			w.restart()
		}
		all, err := w.LastingTokens(auth.LocalOwner)
		if err != nil || len(all) != 1 || all[0].Name != "ci" || all[0].Principal != want {
			t.Errorf("token %d: got %+v, %v, want the principal %s", i+1, all, err, want)
		}
		if i == 2 {
			break
		}
		if err := w.RevokeLasting(t.Context(), auth.LocalOwner, "ci"); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 3 {
		t.Errorf("three tokens are %d principals", len(seen))
	}
	// Tokens of other names are not affected.
	if p, err := w.VerifyLasting(w.token(auth.NewLasting{Name: "ci-2"})); err != nil || p.Name() != "token:ci-2" {
		t.Errorf("got %q, %v, want token:ci-2", p.Name(), err)
	}
}

// USE-8: the last use is kept to the minute, and over a restart.
func TestLastUse(t *testing.T) {
	w := newWorld(t)
	token := w.token(auth.NewLasting{Name: "ci"})
	w.token(auth.NewLasting{Name: "unused"})
	if _, changed := w.LastUses(); changed {
		t.Error("nobody has used a token, and something has changed")
	}
	if _, err := w.VerifyLasting(token); err != nil {
		t.Fatal(err)
	}
	uses, changed := w.LastUses()
	if !changed || len(uses) != 1 {
		t.Fatalf("got %v, %v; want one use, and a change", uses, changed)
	}
	w.restart()
	uses[1<<40] = time.Now() // of no token
	w.RestoreUses(uses)
	all, err := w.LastingTokens(auth.LocalOwner)
	if err != nil || len(all) != 2 || time.Since(all[0].LastUsed) > 2*time.Minute || !all[1].LastUsed.IsZero() {
		t.Errorf("got %+v, %v; want 2 tokens, the first used within 2 minutes and the other never", all, err)
	}
	if uses, _ := w.LastUses(); len(uses) != 1 {
		t.Errorf("got %v, want the use of the one token", uses)
	}
}
