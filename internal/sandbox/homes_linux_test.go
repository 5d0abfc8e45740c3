package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/yaya-ai/yaya/internal/besidetmp"
)

// Where HOME names another folder, the credentials in the home folder that the
// system knows of the user are hidden as well, in each profile that hides those of HOME.
func TestCredentialsOfTheOtherHome(t *testing.T) {
	was := passwdHome
	t.Cleanup(func() { passwdHome = was })
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			dir := besidetmp.Dir(t)
			home, other := filepath.Join(dir, "home"), filepath.Join(dir, "other")
			for _, name := range []string{home + "/.ssh/id", other + "/.ssh/id", other + "/.npmrc", other + "/notes"} {
				if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte("words"), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			passwdHome = func() string { return other }
			for _, c := range []struct{ profile, file, want string }{
				{"command", home + "/.ssh/id", ""},
				{"command", other + "/.ssh/id", ""},
				{"command", other + "/.npmrc", ""},
				{"check", other + "/.ssh/id", ""},
				{"server", other + "/.ssh/id", ""},
				{"command", other + "/notes", "words"},
				{"guarded", other + "/.ssh/id", "words"},
			} {
				p := profile(t, c.profile)
				p.Home = home
				got, err := b.start(t, p, "/", nil, "sh", "-c", "cat "+c.file+" 2>/dev/null; true")
				if err != nil || got.out != c.want {
					t.Errorf("%s in profile %s: got %q, %v; want %q", c.file, c.profile, got.out, err, c.want)
				}
			}
			if !Credentials(home, other+"/.ssh/id") || Credentials(home, other+"/notes") {
				t.Error("Credentials does not know those of the other home folder")
			}
			r := &Run{box: &Box{}, policy: Policy{Home: home}}
			for name, want := range map[string]bool{other: true, other + "/.ssh": true, dir: true, other + "/.nvm": false} {
				if got := r.secret(name); got != want {
					t.Errorf("secret(%s) = %v, want %v", name, got, want)
				}
			}
		})
	}
}
