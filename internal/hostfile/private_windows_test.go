package hostfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/windows"
)

// A folder that everybody may read is exposed; what is made in a private one is not.
func TestExposed(t *testing.T) {
	dir := t.TempDir()
	grant := func(sddl string) {
		t.Helper()
		sd, err := windows.SecurityDescriptorFromString(sddl)
		if err != nil {
			t.Fatal(err)
		}
		list, _, err := sd.DACL()
		if err != nil {
			t.Fatal(err)
		}
		if err := windows.SetNamedSecurityInfo(dir, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION|windows.PROTECTED_DACL_SECURITY_INFORMATION, nil, nil, list, nil); err != nil {
			t.Fatal(err)
		}
	}
	exposed := func(name string) string {
		t.Helper()
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		how, fix, err := Exposed(f)
		if err != nil || (how == "") != (fix == "") {
			t.Fatalf("Exposed(%s) = %q, %q, %v; want a command for what is exposed", name, how, fix, err)
		}
		return how
	}
	grant("D:P(A;OICI;FA;;;OW)(A;OICI;FA;;;BA)(A;OICI;FR;;;WD)")
	if how := exposed(dir); !strings.Contains(how, "Everyone") {
		t.Errorf("Exposed() of a folder for everybody = %q, want that it names Everyone", how)
	}
	if err := MakePrivate(dir); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "x")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{dir, name} {
		if how := exposed(at); how != "" {
			t.Errorf("Exposed(%s) after MakePrivate() = %q, want nothing", at, how)
		}
	}
}
