package loaderenv

import "testing"

func TestIs(t *testing.T) {
	for name, want := range map[string]bool{"LD_PRELOAD": true, "ld_audit": true, "DYLD_INSERT_LIBRARIES": true, "NODE_OPTIONS": true, "PATH": false, "LDAP": false, "": false} {
		if got := Is(name); got != want {
			t.Errorf("Is(%q) = %v, want %v", name, got, want)
		}
	}
}
