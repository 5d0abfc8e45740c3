package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/hosttest"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// A passphrase that nobody enters holds up neither the start of yaya nor its end, and is
// taken when it comes.
func TestServeDoesNotWaitForAPassphrase(t *testing.T) {
	hosttest.NeedPipes(t)
	t.Parallel()
	b := newBox(t)
	phrase, pipe := filepath.Join(b.dir, "phrase"), filepath.Join(b.dir, "pipe")
	if err := errors.Join(os.WriteFile(phrase, []byte("correct horse battery\n"), 0o600), hosttest.MakePipe(pipe)); err != nil {
		t.Fatal(err)
	}
	environ := b.env
	b.env = append(slices.Clip(environ), "YAYA_PASSPHRASE_FILE="+phrase)
	b.secret("x", "canary-value-0123456789")
	b.env = append(slices.Clip(environ), "YAYA_PASSPHRASE_FILE="+pipe)
	p := b.daemon("serve", "--listen", b.addr)
	eventually.True(t, "yaya is ready", func() bool {
		resp, err := http.Get("http://" + b.addr + "/health?ready=1") //nolint:forbidigo,noctx // test
		return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	})
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-p.exited
	if said := p.said.String(); strings.Contains(said, "nothing has filled it within") || strings.Contains(said, "cannot be read") {
		t.Errorf("yaya has waited for the passphrase to the end:\n%s", said)
	}
}

// A failing disk is not the caller's mistake: the answer is an internal error that names it.
func TestSecretsOnABrokenDisk(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.serve()
	b.secret("x", "canary-value-0123456789")
	put := func(name, value string) (int, string) {
		t.Helper()
		status, body, _ := b.rawSocket("PUT", "/api/secrets/"+name, fmt.Sprintf(`{"value":%q}`, value), "Content-Type", "application/json")
		return status, string(body)
	}
	for _, c := range []struct {
		name, secret, value string
		breaks              func() error
		status              int
		want                string
	}{
		{"a value that is short", "x", "short", func() error { return nil }, http.StatusBadRequest, "cannot be hidden"},
		{"a file that is damaged", "x", "a-third-value", func() error { return os.WriteFile(filepath.Join(b.dir, "d", "secrets.sealed"), []byte("{"), 0o600) }, http.StatusInternalServerError, "is damaged"},
	} {
		if err := c.breaks(); err != nil {
			t.Fatal(err)
		}
		if status, body := put(c.secret, c.value); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: PUT = %d %s, want %d with %q", c.name, status, body, c.status, c.want)
		}
	}
}

// The key changes under a running yaya, and doctor says where it lies and whether it opens
// the secrets.
func TestSecretRekey(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.serve()
	doctor := func(want string) {
		t.Helper()
		out, _ := b.run("doctor", "--json")
		var ds []plugin.Diagnosis
		if err := json.Unmarshal([]byte(out[:strings.LastIndex(out, "]")+1]), &ds); err != nil {
			t.Fatalf("yaya doctor --json says %q, %v; want diagnoses in JSON", out, err)
		}
		got := ""
		for _, d := range ds {
			if d.Plugin == "secrets" {
				got = string(d.Status) + " " + d.Summary
			}
		}
		if !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("doctor says %q of the secrets, want %q", got, want)
		}
	}
	doctor("")
	b.secret("x", "canary-value-0123456789")
	old := filepath.Join(b.dir, "c", "secrets.key")
	doctor("ok sealed with the key in " + old)
	if out := b.must("secret", "rekey"); !strings.Contains(out, "the old key "+old+" was kept") {
		t.Errorf("secret rekey says %q", out)
	}
	if err := os.Remove(old); err != nil {
		t.Fatal(err)
	}
	key := b.secrets().Key
	if key == old || filepath.Dir(key) != filepath.Dir(old) {
		t.Errorf("the key is in %s, want another file beside %s", key, old)
	}
	doctor("ok sealed with the key in " + key)
	environ, phrase := b.env, filepath.Join(b.dir, "phrase")
	if err := os.WriteFile(phrase, []byte("correct horse battery\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.env = append(slices.Clip(environ), "YAYA_NEW_PASSPHRASE_FILE="+phrase)
	if out := b.must("secret", "rekey"); !strings.Contains(out, "restart yaya with YAYA_PASSPHRASE_FILE="+phrase) {
		t.Errorf("secret rekey says %q", out)
	}
	if _, err := os.Stat(key); err == nil {
		t.Error("the key is there after a passphrase has replaced it")
	}
	doctor("failed") // this yaya has no passphrase
}
