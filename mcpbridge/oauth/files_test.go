package oauth

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/yaya-ai/yaya/internal/secrets"
)

// earlier is a data folder as an earlier yaya has left it.
type earlier struct {
	t         *testing.T
	dir, keys string
	root      *os.Root
}

func newEarlier(t *testing.T, servers ...string) *earlier {
	t.Helper()
	e := &earlier{t: t, dir: t.TempDir(), keys: t.TempDir()}
	var err error
	if e.root, err = os.OpenRoot(e.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.root.Close() })
	if err := os.Mkdir(filepath.Join(e.dir, folder), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, s := range servers {
		e.write(s, "canary-of-"+s)
	}
	return e
}

func (e *earlier) file(server string) string { return filepath.Join(e.dir, folder, id(server)+".json") }

func (e *earlier) write(server, token string) {
	e.t.Helper()
	data, err := json.MarshalIndent(Grant{Server: server, Token: &oauth2.Token{AccessToken: token}}, "", "  ")
	if err == nil {
		err = os.WriteFile(e.file(server), data, 0o600)
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

// open is a store after a start.
func (e *earlier) open() *Store {
	return NewStore(e.root, secrets.New(secrets.Options{Data: e.root, KeyDir: e.keys}))
}

func (e *earlier) want(when string, tokens map[string]string) {
	e.t.Helper()
	s := e.open()
	for server, want := range tokens {
		if g, err := s.Load(server); err != nil || g.Token == nil || g.Token.AccessToken != want {
			e.t.Errorf("%s: the grant of %s is %+v, %v, want %s", when, server, g.Token, err, want)
		}
		if s.changed(server).IsZero() {
			e.t.Errorf("%s: the grant of %s was never written", when, server)
		}
	}
}

// failing is a vault that ends the process at one point, as far as who uses it can tell.
type failing struct {
	Vault
	calls, at int
	done      bool // the call at which it fails is done
}

var errCrash = errors.New("crashed")

func (f *failing) crash(before bool) error {
	if before {
		f.calls++
	}
	if f.calls == f.at && before != f.done {
		return errCrash
	}
	if f.calls > f.at {
		return errCrash
	}
	return nil
}

func (f *failing) Record(key string) ([]byte, time.Time, error) {
	if err := f.crash(true); err != nil {
		return nil, time.Time{}, err
	}
	data, at, err := f.Vault.Record(key)
	return data, at, errors.Join(err, f.crash(false))
}

func (f *failing) PutRecord(key string, data []byte) error {
	if err := f.crash(true); err != nil {
		return err
	}
	return errors.Join(f.Vault.PutRecord(key, data), f.crash(false))
}

// The grants of an earlier yaya are sealed, and their files are gone. Wherever the move is
// cut off, no grant is lost, and the next start goes on with it.
func TestMigrateAtAnyPoint(t *testing.T) {
	tokens := map[string]string{"https://a/mcp": "canary-of-https://a/mcp", "https://b/mcp": "canary-of-https://b/mcp"}
	for at := range 8 {
		for _, done := range []bool{false, true} {
			when := fmt.Sprintf("cut off at call %d, done %v", at, done)
			e := newEarlier(t, "https://a/mcp", "https://b/mcp")
			e.want(when+", before", tokens)
			s := e.open()
			s.vault = &failing{Vault: s.vault, at: at, done: done}
			_, err := s.Migrate()
			if at < 6 && err == nil {
				t.Errorf("%s: Migrate was not cut off", when)
			}
			e.want(when+", after", tokens)
			if _, err := e.open().Migrate(); err != nil {
				t.Errorf("%s: Migrate again = %v", when, err)
			}
			e.want(when+", at last", tokens)
			if _, err := os.Stat(filepath.Join(e.dir, folder)); !os.IsNotExist(err) {
				t.Errorf("%s: the folder of files is still there: %v", when, err)
			}
			if n, err := e.open().Migrate(); n != 0 || err != nil {
				t.Errorf("%s: Migrate a third time = %d, %v", when, n, err)
			}
		}
	}
}

// A file that cannot be deleted, after its grant was sealed: both are there, and the same.
func TestMigrateWithoutDeleting(t *testing.T) {
	e := newEarlier(t, "https://a/mcp")
	data, err := os.ReadFile(e.file("https://a/mcp"))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := e.open().Migrate(); n != 1 || err != nil {
		t.Fatalf("Migrate = %d, %v", n, err)
	}
	// As if it had been cut off before the file was deleted.
	if err := os.Mkdir(filepath.Join(e.dir, folder), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(e.file("https://a/mcp"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	before := time.Now().Add(-time.Hour)
	if err := os.Chtimes(e.file("https://a/mcp"), before, before); err != nil {
		t.Fatal(err)
	}
	s := e.open()
	if err := s.Save(Grant{Server: "https://a/mcp", Token: &oauth2.Token{AccessToken: "renewed"}}); err != nil {
		t.Fatal(err)
	}
	e.want("renewed", map[string]string{"https://a/mcp": "renewed"})
	if _, err := os.Stat(e.file("https://a/mcp")); !os.IsNotExist(err) {
		t.Errorf("the file of a grant that was renewed is still there: %v", err)
	}
}

// A grant that an earlier yaya has renewed, after this one had moved it, is the newer one.
func TestMigrateAfterDowngrade(t *testing.T) {
	e := newEarlier(t, "https://a/mcp")
	if _, err := e.open().Migrate(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(e.dir, folder), 0o700); err != nil {
		t.Fatal(err)
	}
	e.write("https://a/mcp", "by the earlier one")
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(e.file("https://a/mcp"), later, later); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"https://a/mcp": "by the earlier one"}
	e.want("before", want)
	if _, err := e.open().Migrate(); err != nil {
		t.Fatal(err)
	}
	e.want("after", want)
}

// AU-42: a grant that cannot be moved is named with the remedy, stays, and keeps no other from
// being moved.
func TestMigrateNamesWhatStays(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(file string) error
		want string
	}{
		"a file that others can read": {func(f string) error { return os.Chmod(f, 0o644) }, "chmod 600"},
		"a file that is damaged":      {func(f string) error { return os.WriteFile(f, []byte("{"), 0o600) }, "sign in again"},
		"a file that is too large":    {func(f string) error { return os.WriteFile(f, make([]byte, maxGrant+1), 0o600) }, "too large"},
		"a pipe":                      {func(f string) error { return errors.Join(os.Remove(f), os.Mkdir(f, 0o700)) }, "not a regular file"},
	} {
		e := newEarlier(t, "https://a/mcp", "https://b/mcp")
		if err := c.do(e.file("https://a/mcp")); err != nil {
			t.Fatal(err)
		}
		n, err := e.open().Migrate()
		if n != 1 || err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: Migrate = %d, %v, want 1 and %q", name, n, err, c.want)
		}
		if _, err := os.Lstat(e.file("https://a/mcp")); err != nil {
			t.Errorf("%s: it is gone: %v", name, err)
		}
		if _, err := e.open().Load("https://a/mcp"); err == nil {
			t.Errorf("%s: it is used", name)
		}
		e.want(name, map[string]string{"https://b/mcp": "canary-of-https://b/mcp"})
	}
}

// A grant that cannot be sealed, because its key cannot be made or had, is used and renewed
// where it is; a new one is refused with the reason.
func TestGrantsThatCannotBeSealed(t *testing.T) {
	e := newEarlier(t, "https://a/mcp")
	if err := os.WriteFile(filepath.Join(e.keys, secrets.KeyFile), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := e.open()
	if n, err := s.Migrate(); n != 0 || err == nil || !strings.Contains(err.Error(), secrets.KeyFile) {
		t.Errorf("Migrate = %d, %v, want what is wrong with the key", n, err)
	}
	e.want("not moved", map[string]string{"https://a/mcp": "canary-of-https://a/mcp"})
	if err := s.Save(Grant{Server: "https://a/mcp", Token: &oauth2.Token{AccessToken: "renewed"}}); err != nil {
		t.Errorf("Save of a grant that was there = %v", err)
	}
	e.want("renewed", map[string]string{"https://a/mcp": "renewed"})
	if err := s.Save(Grant{Server: "https://b/mcp", Token: &oauth2.Token{AccessToken: "new"}}); err == nil || !strings.Contains(err.Error(), secrets.KeyFile) {
		t.Errorf("Save of a new grant = %v, want what is wrong with the key", err)
	}
	// The key is lost once others are sealed: still the file counts.
	if err := os.WriteFile(filepath.Join(e.dir, secrets.File), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	e.want("beside a damaged file", map[string]string{"https://a/mcp": "renewed"})
}
