package mcpbridge

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// A file of variables that a folder brings sets no more than the folder's own entry does.
func TestEnvFileOfAFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(file, []byte("A=1\nGIT_CONFIG_COUNT=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for project, want := range map[bool]string{true: "GIT_CONFIG_COUNT", false: ""} {
		s := servers.Server{EnvFile: file, Project: project}
		err := new(Bridge).readEnvFile(t.Context(), &s)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("readEnvFile of a project %v = %v, want an error with %q", project, err, want)
		}
	}
}
