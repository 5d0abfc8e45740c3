package loaderenv

import "testing"

func TestIs(t *testing.T) {
	for name, want := range map[string]bool{"LD_PRELOAD": true, "ld_audit": true, "DYLD_INSERT_LIBRARIES": true, "NODE_OPTIONS": true, "PATH": false, "LDAP": false, "": false} {
		if got := Is(name); got != want {
			t.Errorf("Is(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestLoads(t *testing.T) {
	for name, want := range map[string]bool{
		"LD_PRELOAD": true, "NODE_OPTIONS": true, "GIT_CONFIG_COUNT": true, "GIT_CONFIG": true, "git_config_key_0": true, "GIT_SSH_VARIANT": true, "GIT_EXTERNAL_DIFF": true,
		"SSH_ASKPASS": true, "LUA_INIT_5_4": true, "CORECLR_PROFILER_PATH_64": true, "COREPACK_NPM_REGISTRY": true, "PAGER": true, "Editor": true,
		"GITHUB_TOKEN": false, "GIT_AUTHOR_NAME": false, "PAGERDUTY_TOKEN": false, "BROWSER_TYPE": false, "EDITOR_THEME": false, "OPENSSL": false, "": false,
	} {
		if got := Loads(name); got != want {
			t.Errorf("Loads(%q) = %v, want %v", name, got, want)
		}
	}
	if Is("PAGER") || Is("GIT_CONFIG_GLOBAL") {
		t.Error("Is reports variables of your own configuration, want those of Loads alone")
	}
}
