package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// blanks are settings below the home folder of package managers and tools that end at a file
// which they cannot read, with what such a file has to hold at least. They may hold tokens, so
// a sandbox shows them without any setting.
var blanks = map[string]string{
	".yarnrc.yml": "", ".bundle/config": "---\n", ".gradle/gradle.properties": "", ".terraformrc": "",
	".m2/settings.xml": "<settings/>\n", ".m2/settings-security.xml": "<settingsSecurity/>\n",
	".nuget/NuGet/NuGet.Config": "<configuration/>\n", ".config/NuGet/NuGet.Config": "<configuration/>\n",
	".composer/auth.json": "{}\n", ".config/composer/auth.json": "{}\n",
}

// blank shows the hidden files of [blanks] as files without a setting.
func (r *Run) blank(s *rules, plan *inside.Plan) error {
	if !plan.Mounts {
		return nil
	}
	sorted := inside.Sort(s.all)
	for name, content := range blanks {
		at := real(filepath.Join(r.policy.Home, name))
		info, err := os.Stat(at) //nolint:gosec // it is only looked for
		if err != nil || !info.Mode().IsRegular() || inside.Effective(sorted, at, plan.Otherwise()) != inside.Hide {
			continue // nothing that a program would read
		}
		// Beside the cache, where no program in a sandbox puts another one in its place.
		shown := real(r.policy.Cache) + "-" + strings.ReplaceAll(strings.TrimPrefix(name, "."), "/", "-")
		if err := store(shown, []byte(content)); err != nil {
			return fmt.Errorf("settings of ~/%s: %w", name, err)
		}
		s.all = append(s.all, inside.Rule{Path: at, Access: inside.Read, From: shown})
	}
	return nil
}
