package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// credentials are hidden below the home folders, by all profiles but guarded, unless they are
// named. They are files where programs need the rest of the folder. docs/SANDBOX.md has the
// same list.
var credentials = []string{
	// Keys and password stores.
	".ssh", ".gnupg", ".password-store", ".local/share/keyrings", ".local/share/kwalletd", ".config/op", ".config/Bitwarden CLI", ".config/sops/age", ".config/age", ".age", ".vault-token", ".config/keybase",
	// Clouds.
	".aws", ".azure", ".config/gcloud", ".oci", ".kube", ".config/doctl", ".config/hcloud", ".config/scw", ".config/linode-cli", ".config/rclone", ".rclone.conf", ".s3cfg", ".boto",
	".terraform.d/credentials.tfrc.json", ".terraformrc", ".pulumi/credentials.json", ".fly/config.yml", ".config/heroku", ".local/share/heroku", ".config/netlify", ".config/vercel", ".local/share/com.vercel.cli", ".wrangler", ".config/.wrangler", ".config/configstore",
	".databrickscfg", ".snowflake", ".snowsql", ".config/snowflake", ".kaggle", ".config/kaggle", ".config/cloudflared", ".cloudflared",
	// Git and its hosts.
	".git-credentials", ".config/git/credentials", ".config/gh", ".config/hub", ".config/glab-cli", ".config/tea",
	// Agents and models.
	".claude/.credentials.json", ".claude.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".gemini/settings.json", ".cursor/mcp.json", ".copilot", ".config/github-copilot", ".local/share/opencode/auth.json", ".config/goose", ".aider.conf.yml",
	".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".huggingface", ".config/openai", ".config/anthropic",
	// Packages and containers.
	".npmrc", ".yarnrc.yml", ".pypirc", ".cargo/credentials.toml", ".cargo/credentials", ".gem/credentials", ".bundle/config", ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties",
	".nuget/NuGet/NuGet.Config", ".config/NuGet/NuGet.Config", ".composer/auth.json", ".config/composer/auth.json", ".config/pypoetry/auth.toml", ".local/share/uv/credentials", ".docker", ".config/containers/auth.json", ".config/helm",
	// Databases and the network.
	".pgpass", ".my.cnf", ".mylogin.cnf", ".netrc", ".authinfo", ".authinfo.gpg", ".mongorc.js", ".redisclirc_auth", ".config/NetworkManager", ".config/filezilla",
	// Browsers and mail.
	".mozilla", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi", ".config/opera", "snap/firefox", "snap/chromium", ".thunderbird", ".var/app", ".config/Signal",
	"Library/Keychains", "Library/Application Support/Google/Chrome", "Library/Application Support/Firefox", "Library/Cookies", "Library/Application Support/Claude",
	// Histories, which hold what was typed.
	".bash_history", ".zsh_history", ".local/share/fish/fish_history", ".histfile", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history", ".rediscli_history", ".sqlite_history", ".lesshst",
}

// moved are the variables of the environment that name another place for credentials, and
// the hidden files in it; "" means the place itself, which may be a list of paths.
var moved = map[string][]string{
	"AWS_SHARED_CREDENTIALS_FILE": {""}, "AWS_CONFIG_FILE": {""}, "AZURE_CONFIG_DIR": {""}, "CLOUDSDK_CONFIG": {""}, "GOOGLE_APPLICATION_CREDENTIALS": {""}, "OCI_CLI_CONFIG_FILE": {""}, "KUBECONFIG": {""},
	"DATABRICKS_CONFIG_FILE": {""}, "KAGGLE_CONFIG_DIR": {""}, "RCLONE_CONFIG": {""}, "TF_CLI_CONFIG_FILE": {""},
	"GNUPGHOME": {""}, "PASSWORD_STORE_DIR": {""}, "SOPS_AGE_KEY_FILE": {""},
	"GH_CONFIG_DIR": {""}, "GLAB_CONFIG_DIR": {""},
	"CLAUDE_CONFIG_DIR": {".credentials.json", ".claude.json"}, "CODEX_HOME": {"auth.json"}, "HF_HOME": {"token", "stored_tokens"}, "HF_TOKEN_PATH": {""},
	"CARGO_HOME": {"credentials.toml", "credentials"}, "GRADLE_USER_HOME": {"gradle.properties"}, "COMPOSER_HOME": {"auth.json"}, "DOCKER_CONFIG": {""}, "REGISTRY_AUTH_FILE": {""}, "NPM_CONFIG_USERCONFIG": {""},
	"PGPASSFILE": {""}, "NETRC": {""},
}

// baseDirs are the variables of the XDG Base Directory Specification, and the folders below
// the home folder in whose place their values stand.
var baseDirs = map[string]string{"XDG_CONFIG_HOME": ".config/", "XDG_DATA_HOME": ".local/share/", "XDG_CACHE_HOME": ".cache/"}

// credentialPaths are all places of credentials: below the home folders, and where the
// environment of yaya says. A relative value counts from yaya's folder, and from those of
// the program.
func credentialPaths(home string, from ...string) (all []string) {
	bases := map[string]string{}
	for variable, below := range baseDirs {
		if dir := os.Getenv(variable); filepath.IsAbs(dir) {
			bases[below] = dir
		}
	}
	for _, name := range credentials {
		for _, dir := range homes(home) {
			all = append(all, filepath.Join(dir, name))
		}
		for below, dir := range bases {
			if rest, ok := strings.CutPrefix(name, below); ok {
				all = append(all, filepath.Join(dir, rest))
			}
		}
	}
	if here, err := os.Getwd(); err == nil {
		from = append([]string{here}, from...)
	}
	for _, kv := range os.Environ() {
		variable, value, _ := strings.Cut(kv, "=")
		if upper := strings.ToUpper(variable); strings.HasPrefix(upper, "NPM_CONFIG_") { // npm reads them in any case
			variable = upper
		}
		for _, name := range moved[variable] {
			for _, at := range movedTo(home, value, from) {
				if at = filepath.Join(at, name); !slices.Contains(all, at) {
					all = append(all, at)
				}
			}
		}
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) { // of podman; the rest of it is hidden with /run
		all = append(all, filepath.Join(dir, "containers/auth.json"))
	}
	return all
}

// movedTo are the paths that the value of a variable of [moved] may mean: one, which may have
// a colon in its name, or a list. A folder around the home folder, or around the one that a
// relative path starts in, is a mistake: to hide it would hide everything.
func movedTo(home, value string, from []string) (all []string) {
	names := filepath.SplitList(value)
	if len(names) > 1 {
		names = append(names, value)
	}
	for _, name := range names {
		var at []string
		switch {
		case name == "", name == "~":
		case filepath.IsAbs(name):
			at = []string{filepath.Clean(name)}
		case strings.HasPrefix(name, "~/"): // some programs expand it, whichever shell has not
			for _, dir := range homes(home) {
				at = append(at, filepath.Join(dir, name[2:]))
			}
		default:
			for _, dir := range from {
				if to := filepath.Join(dir, name); dir != "" && !Within([]string{to}, dir) {
					at = append(at, to)
				}
			}
		}
		all = append(all, slices.DeleteFunc(at, func(at string) bool { return tooWide(home, at) })...)
	}
	return all
}

// tooWide reports whether a folder holds the home folder, so that hiding it would hide
// everything: a variable that names one is a mistake.
func tooWide(home, at string) bool {
	for _, dir := range homes(home) {
		if Within([]string{at}, dir) {
			return true
		}
	}
	return at == "/"
}
