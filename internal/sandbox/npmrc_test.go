package sandbox

import "testing"

// F7: a setting of npm is shown if its value cannot be a secret: a registry by its host,
// and others by values that npm knows.
func TestNpmShown(t *testing.T) {
	nowhere := func(scope string) string {
		return "; yaya hides the registry of this scope, whose address may hold a secret\n" + scope + ":registry=https://yaya-hides-the-registry-of-this-scope.invalid/\n"
	}
	for _, c := range []struct{ name, line, want string }{
		{"a registry", "registry=https://npm.corp.example/", "registry=https://npm.corp.example/\n"},
		{"one with a port and a path", "registry = http://10.1.2.3:4873/api/npm/npm-virtual/", "registry=http://10.1.2.3:4873/api/npm/npm-virtual/\n"},
		{"one of a scope", "@corp:registry=https://npm.pkg.example", "@corp:registry=https://npm.pkg.example\n"},
		{"a token in the path", "registry=https://host.example/npm_aB3dE6gH9jK2mN5pQ8/npm/", ""},
		{"a token of small letters", "registry=https://host.example/abcdefghijklmnopqrstuvwxyz/npm/", ""},
		{"digits in the path", "registry=https://host.example/12345/npm/", ""},
		{"a token behind a comment", "@a:registry=https://x.example/#_authToken=S", "@a:registry=https://x.example/\n"},
		{"an opaque address", "registry=https:user:pass@reg/", ""},
		{"a user, of a scope", "@a:registry=https://user:pass@reg.example/", nowhere("@a")},
		{"a token in the path, of a scope", "@a:registry = https://host.example/npm_aB3dE6gH9jK2mN5pQ8/npm/ ; x", nowhere("@a")},
		{"a variable, of a scope", "@a.b:registry=${REG}", nowhere("@a.b")},
		{"an escape, of a scope", `@a:registry=https://x.example/\;x`, nowhere("@a")},
		{"nothing, of a scope", "@a:registry=", ""},
		{"a user", "registry=https://user:pass@reg.example/", ""},
		{"a query", "registry=https://reg.example/?token=s", ""},
		{"an empty query", "registry=https://reg.example/?", ""},
		{"a variable", "registry=https://${TOKEN}.example/", ""},
		{"a registry of a cloud", "registry=https://corp-111122223333.d.example:443/npm/repo/", "registry=https://corp-111122223333.d.example:443/npm/repo/\n"},
		{"an escaped path", "registry=https://reg.example/%61bc/", ""},
		{"no host", "registry=https:///abc/", ""},
		{"another scheme", "registry=ftp://reg.example/", ""},
		{"a comment behind a registry", "registry=https://reg.example/ ; tok COMMENT", "registry=https://reg.example/\n"},
		{"a comment behind a setting", "audit = false;TEXT", "audit=false\n"},
		{"another comment", "ignore-scripts = true # TEXT", "ignore-scripts=true\n"},
		{"an escaped comment", `audit = false\;TEXT`, ""},
		{"quotes", `ignore-scripts = "true"`, "ignore-scripts=true\n"},
		{"quotes around a comment", `audit="false;TEXT"`, ""},
		{"no value", "ignore-scripts", "ignore-scripts=true\n"},
		{"a value for scripts that is not shown", "ignore-scripts=${SECRET}", "ignore-scripts=true\n"},
		{"scripts that may run", "ignore-scripts=false", "ignore-scripts=false\n"},
		{"a list", "omit[] = dev", "omit[]=dev\n"},
		{"a comment", "; ignore-scripts=false", ""},
		{"of a section", "[x]\nignore-scripts=false", ""},
		{"lines of Windows", "audit=false\r\nfund=false\r", "audit=false\nfund=false\n"},
		{"a switch", "audit = false", "audit=false\n"},
		{"a word", "node-linker=hoisted", "node-linker=hoisted\n"},
		{"null", "omit=null", "omit=null\n"},
		{"a prefix", "save-prefix=~", "save-prefix=~\n"},
		{"a secret as a value", "node-linker=npm_aB3dE6gH9jK2mN5pQ8", ""},
		{"a control byte", "audit=fal\x00se", ""},
		{"a secret setting", "_auth=true", ""},
		{"a secret without a value", "npm_aB3dE6gH9jK2mN5pQ8", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(npmShown([]byte(c.line + "\n"))); got != c.want {
				t.Errorf("npmShown(%q) = %q, want %q", c.line, got, c.want)
			}
		})
	}
}
