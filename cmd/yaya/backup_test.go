package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
)

// OP-49: a yaya is backed up while clients talk to it, destroyed, restored, verified, and
// goes on with everything that was answered before the backup.
func TestExampleBackupRestore(t *testing.T) {
	t.Parallel()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "key.txt")
	if err := os.WriteFile(key, []byte(id.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string][]string{"in the clear": nil, "encrypted": {"RECIPIENT=" + id.Recipient().String(), "IDENTITY=" + key}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "../../examples/backup-restore/run.sh")
			cmd.Env = append(os.Environ(), append(env, "YAYA="+binary(t), "HOME="+t.TempDir())...)
			out, err := cmd.CombinedOutput()
			want := `backed up: under load
destroyed: data and configuration
restored: verified
goes on: 4 conversations, the token and the secret`
			if err != nil || strings.TrimSpace(string(out)) != want {
				t.Errorf("got %v\n%s\nwant\n%s", err, out, want)
			}
		})
	}
}
