package service

import (
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the files of deploy again")

// shipped are the files of deploy, by folder.
var shipped = map[string]struct {
	os   string
	spec Spec
}{
	"systemd/user": {"linux", Spec{Program: "/usr/local/bin/yaya", Args: []string{"serve", "--no-open"}}},
	"systemd/system": {"linux", Spec{
		Program: "/usr/local/bin/yaya", System: true, User: "yaya",
		Args:    []string{"serve", "--no-open", "--data-dir", SystemState + "/data", "--config-dir", SystemState + "/config"},
		Sockets: []Socket{{"listen", "127.0.0.1:8787"}},
	}},
	"launchd": {"darwin", Spec{Program: "/usr/local/bin/yaya", Args: []string{"serve", "--no-open"}, Log: "/tmp/yaya.log"}},
}

// OP-90: the files in deploy are those that yaya installs.
func TestShippedFiles(t *testing.T) {
	for folder, x := range shipped {
		for _, f := range x.spec.Files(x.os) {
			path := filepath.Join("../../deploy", folder, f.Name)
			if *update {
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(f.Text), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(path)
			if err != nil || string(got) != f.Text {
				t.Errorf("%s is not what yaya writes (%v): go test ./internal/service -run TestShippedFiles -update", path, err)
			}
		}
	}
}

// awkward are arguments that systemd and XML have to get in quotes.
var awkward = []string{"serve", "--data-dir", "/srv/a b/100%/\"q\"/it's/$HOME/${X}/back\\slash/;/é", "", "%h"}

// OP-91: systemd accepts the units of users and of the system, with sockets and awkward
// arguments, without a warning.
func TestSystemdVerifiesUnits(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("units are for Linux")
	}
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		if _, aerr := exec.LookPath("apt-get"); aerr == nil && os.Getenv("YAYA_PEERS_REQUIRED") != "" {
			t.Fatal("systemd-analyze is missing: make systemd")
		}
		t.Skip("systemd-analyze is missing")
	}
	version, err := exec.CommandContext(t.Context(), "systemctl", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	known := Host{OS: "linux", Run: func(context.Context, ...string) (string, error) { return string(version), nil }}.KnowsNotifyReload(t.Context())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sockets := []Socket{{"listen", "127.0.0.1:8787"}, {"local", "[::1]:8788"}, {"acme-http", "80"}}
	for name, s := range map[string]Spec{
		"user":                {},
		"user with a socket":  {Sockets: sockets[:1]},
		"awkward":             {Args: awkward, Env: []string{"PATH=/a b:/c%d:\"e\":$f", "YAYA_PASSPHRASE_FILE=/x"}},
		"system":              {System: true, User: "root"},
		"system with sockets": {System: true, User: "root", Sockets: sockets},
	} {
		t.Run(name, func(t *testing.T) {
			s.Program, s.NotifyReload = self, known
			dir := t.TempDir()
			files := s.units()
			if _, err := write(dir, files); err != nil {
				t.Fatal(err)
			}
			args := []string{"--man=no", "verify"}
			if !s.System {
				args = append([]string{"--user"}, args...)
			}
			for _, f := range files {
				args = append(args, filepath.Join(dir, f.Name))
			}
			cmd := exec.CommandContext(t.Context(), verify, args...)
			cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Contains(string(out), dir) {
				t.Errorf("systemd-analyze %s = %v\n%s\nwant no complaint about\n%s", strings.Join(args, " "), err, out, files[0].Text)
			}
		})
	}
}

// OP-91: a unit that systemd does not accept is noticed by the test above: it names the line.
func TestSystemdNoticesMistakes(t *testing.T) {
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("systemd-analyze is missing")
	}
	path := filepath.Join(t.TempDir(), Unit)
	text := strings.Replace(Spec{Program: "/bin/true", System: true, User: "root"}.serviceUnit(), "OOMPolicy=continue", "OOMPolicy=whatever", 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := exec.CommandContext(t.Context(), verify, "--man=no", "verify", path).CombinedOutput()
	if !strings.Contains(string(out), path+":") {
		t.Errorf("systemd-analyze verify says\n%s\nwant the line of the mistake", out)
	}
}

// OP-91: systemd reads a quoted word as the word.
func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"/usr/bin/yaya": "/usr/bin/yaya", "": `""`, "a b": `"a b"`, "100%": "100%%", `a"b`: `"a\"b"`, "it's": `"it's"`, `a\b`: `"a\\b"`, ";": `";"`,
	} {
		if got := quote(word); got != want {
			t.Errorf("quote(%q) = %s, want %s", word, got, want)
		}
	}
	if got := execStart([]string{"/y", "$HOME"}); got != ":/y $HOME" {
		t.Errorf("execStart with a $ = %s, want variables off", got)
	}
	if err := (Spec{Program: "/a\nb"}).check(); err == nil {
		t.Error("check() of a path with a line end = nil, want an error")
	}
}

// plistKeys are the keys of launchd.plist(5) that yaya uses, with their types.
var plistKeys = map[string]string{
	"Label": "string", "ProgramArguments": "array", "UserName": "string", "EnvironmentVariables": "dict", "RunAtLoad": "true", "KeepAlive": "dict",
	"ExitTimeOut": "integer", "SoftResourceLimits": "dict", "StandardOutPath": "string", "StandardErrorPath": "string",
}

// node is an element of a property list.
type node struct {
	XMLName xml.Name
	Text    string `xml:",chardata"`
	Nodes   []node `xml:",any"`
}

// OP-92: the property list has the structure of its DTD, and the arguments as they are.
func TestPlist(t *testing.T) {
	s := Spec{Program: "/Applications/y & z/yaya", Args: awkward, Env: []string{"PATH=/usr/bin:/a<b>", "X=1"}, Log: "/l", System: true, User: "me"}
	text := s.plist()[0].Text
	if !strings.HasPrefix(text, xml.Header[:len(xml.Header)-1]) || !ours(text) {
		t.Errorf("the list begins with\n%s\nwant the XML declaration, and who wrote it", text[:200])
	}
	var list node
	d := xml.NewDecoder(strings.NewReader(text))
	d.Strict = true
	if err := d.Decode(&list); err != nil {
		t.Fatalf("the list is not XML: %v\n%s", err, text)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		if tok, terr := d.Token(); !errors.Is(terr, io.EOF) {
			t.Errorf("something follows the list: %v %v", tok, err)
		}
	}
	if list.XMLName.Local != "plist" || len(list.Nodes) != 1 {
		t.Fatalf("got <%s> with %d elements, want plist with one", list.XMLName.Local, len(list.Nodes))
	}
	top := dict(t, list.Nodes[0])
	for key, n := range top {
		if want := plistKeys[key]; n.XMLName.Local != want {
			t.Errorf("%s is <%s>, want <%s>", key, n.XMLName.Local, want)
		}
	}
	var args []string
	for _, a := range top["ProgramArguments"].Nodes {
		args = append(args, a.Text)
	}
	if want := append([]string{s.Program}, s.Args...); !slices.Equal(args, want) {
		t.Errorf("ProgramArguments = %q, want %q", args, want)
	}
	if got := dict(t, top["EnvironmentVariables"])["PATH"].Text; got != "/usr/bin:/a<b>" {
		t.Errorf("PATH = %q", got)
	}
}

// dict returns the values of a dictionary, in which keys and values take turns.
func dict(t *testing.T, n node) map[string]node {
	t.Helper()
	out := map[string]node{}
	if n.XMLName.Local != "dict" || len(n.Nodes)%2 != 0 {
		t.Fatalf("got <%s> with %d elements, want a dict with pairs", n.XMLName.Local, len(n.Nodes))
	}
	for pair := range slices.Chunk(n.Nodes, 2) {
		key, value := pair[0], pair[1]
		if _, twice := out[key.Text]; key.XMLName.Local != "key" || twice {
			t.Fatalf("got <%s> %q, want another key", key.XMLName.Local, key.Text)
		}
		switch value.XMLName.Local {
		case "dict":
			dict(t, value)
		case "array", "string", "integer", "true", "false":
		default:
			t.Fatalf("%s is <%s>, which no property list has", key.Text, value.XMLName.Local)
		}
		out[key.Text] = value
	}
	return out
}

// manager is a service manager that knows one service.
type manager struct {
	enabled, running bool
	told             []string
	fail             string // a command that fails
}

func (m *manager) run(_ context.Context, argv ...string) (string, error) {
	all := strings.Join(argv, " ")
	m.told = append(m.told, all)
	if m.fail != "" && strings.Contains(all, m.fail) {
		return "", errors.New("it failed")
	}
	switch {
	case strings.Contains(all, " show "):
		return fmt.Sprintf("ActiveState=%s\nSubState=x\nUnitFileState=%s\nMainPID=7\nStatusText=yaya v1.2.3 serves here\nResult=success\n", map[bool]string{true: "active", false: "inactive"}[m.running], map[bool]string{true: "enabled", false: "disabled"}[m.enabled]), nil
	case strings.Contains(all, " enable"):
		m.enabled = true
	case strings.Contains(all, " start"), strings.Contains(all, " restart"), strings.Contains(all, " bootstrap"):
		m.running = true
	case strings.Contains(all, " disable"):
		m.enabled, m.running = false, false
	case strings.Contains(all, " stop"), strings.Contains(all, " bootout"):
		m.running = false
	case strings.Contains(all, " print"):
		if !m.running {
			return "", errors.New("could not find service")
		}
		return "ai.yaya = {\n\tstate = running\n\tpid = 7\n}\n", nil
	}
	return "", nil
}

// since returns the commands that change something.
func (m *manager) since() (out []string) {
	for _, c := range m.told {
		if !strings.Contains(c, " show ") && !strings.Contains(c, " print ") {
			out = append(out, c)
		}
	}
	m.told = nil
	return out
}

func installed(t *testing.T, goos string, s Spec) (*Service, *manager) {
	t.Helper()
	m := new(manager)
	root := t.TempDir()
	for _, dir := range []string{"run/systemd/system", "home", "config"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.Program = "/usr/local/bin/yaya"
	x, err := New(Host{OS: goos, Root: root, Home: filepath.Join(root, "home"), Config: filepath.Join(root, "config"), UID: 0, Name: "me", Run: m.run}, s)
	if err != nil {
		t.Fatal(err)
	}
	return x, m
}

// OP-93: an installation starts the service, the next one changes nothing, one with other
// flags restarts it, and its removal leaves nothing of it.
func TestInstall(t *testing.T) {
	for name, goos := range map[string]string{"systemd": "linux", "launchd": "darwin"} {
		for _, system := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, system %v", name, system), func(t *testing.T) {
				s := Spec{System: system, User: "me", Args: []string{"serve"}, Log: "/l"}
				if goos == "linux" {
					s.Sockets = []Socket{{"listen", "80"}}
				}
				x, m := installed(t, goos, s)
				d, err := x.Install(t.Context())
				if err != nil || len(d.Files) != 1+len(s.Sockets) || !slices.Equal(d.Acts, []string{"enabled", "started"}) || !m.running {
					t.Fatalf("Install() = %+v, %v; want it enabled and started", d, err)
				}
				m.since()
				if d, err := x.Install(t.Context()); err != nil || len(d.Files)+len(d.Acts) > 0 {
					t.Errorf("Install() again = %+v, %v; want nothing done", d, err)
				}
				m.since()
				st, err := x.Status(t.Context())
				if err != nil || !st.Installed || !st.Enabled || !st.Running || st.PID != 7 || st.Changed || st.Log == "" || goos == "linux" && st.Version != "v1.2.3" {
					t.Errorf("Status() = %+v, %v; want it running as 7", st, err)
				}
				x.spec.Args, x.spec.Sockets = append(x.spec.Args, "--acme"), nil
				if d, err := x.Install(t.Context()); err != nil || len(d.Files) != 1 || !strings.Contains(strings.Join(d.Acts, " "), "started") {
					t.Errorf("Install() with another flag = %+v, %v; want it restarted", d, err)
				}
				if d, err := x.Uninstall(t.Context()); err != nil || len(d.Files) != 1 || m.running {
					t.Errorf("Uninstall() = %+v, %v; running %v", d, err, m.running)
				}
				left, err := os.ReadDir(x.dir())
				if err != nil || len(left) > 0 {
					t.Errorf("the folder has %v, %v; want nothing", left, err)
				}
				if d, err := x.Uninstall(t.Context()); err != nil || len(d.Files) > 0 {
					t.Errorf("Uninstall() again = %+v, %v; want nothing done", d, err)
				}
				if st, err := x.Status(t.Context()); err != nil || st.Installed {
					t.Errorf("Status() = %+v, %v; want it not installed", st, err)
				}
			})
		}
	}
}

// OP-94: a file that somebody else wrote or edited, and a link, are neither replaced nor
// removed, and nothing else is done either.
func TestFilesOfOthers(t *testing.T) {
	for name, edit := range map[string]func(path string) error{
		"another program's": func(path string) error { return os.WriteFile(path, []byte("[Service]\n"), 0o600) },
		"edited": func(path string) error {
			text, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path, append(text, "Nice=5\n"...), 0o600))
		},
		"a link": func(path string) error {
			return errors.Join(os.Rename(path, path+".else"), os.Symlink(path+".else", path))
		},
		"a folder": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			x, m := installed(t, "linux", Spec{Args: []string{"serve"}})
			if _, err := x.Install(t.Context()); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(x.dir(), Unit)
			if err := edit(path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)
			m.since()
			x.spec.Args = []string{"serve", "--acme"}
			_, ierr := x.Install(t.Context())
			_, uerr := x.Uninstall(t.Context())
			for _, err := range []error{ierr, uerr} {
				if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "drop-in") {
					t.Errorf("got %v, want an error that names the file and the remedy", err)
				}
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Errorf("the file is\n%s\nwant it as it was", after)
			}
			if did := m.since(); len(did) > 0 {
				t.Errorf("the service manager was told %q, want nothing", did)
			}
			if st, err := x.Status(t.Context()); err != nil || !st.Changed {
				t.Errorf("Status() = %+v, %v; want it to say that the file was changed", st, err)
			}
		})
	}
}

// OP-94: without a service manager, as somebody else than root, and when the service does not
// start, the error says what to do.
func TestCannotInstall(t *testing.T) {
	if _, err := New(Host{OS: "linux", Root: t.TempDir()}, Spec{}); !errors.Is(err, ErrNoManager) || !strings.Contains(err.Error(), "/run/systemd/system") {
		t.Errorf("New() without systemd = %v", err)
	}
	if _, err := New(Host{OS: "freebsd"}, Spec{}); !errors.Is(err, ErrNoManager) {
		t.Errorf("New() on FreeBSD = %v, want %v", err, ErrNoManager)
	}
	x, m := installed(t, "linux", Spec{System: true, User: "me"})
	x.host.UID = 1000
	if _, err := x.Install(t.Context()); err == nil || !strings.Contains(err.Error(), "sudo") || len(m.told) > 0 {
		t.Errorf("Install() of a system's service = %v, told %q; want sudo, and nothing done", err, m.told)
	}
	x, m = installed(t, "linux", Spec{})
	m.fail = " start "
	if _, err := x.Install(t.Context()); err == nil || !strings.Contains(err.Error(), "journalctl --user -u yaya.service") {
		t.Errorf("Install() of a service that does not start = %v, want where its log is", err)
	}
	x, m = installed(t, "linux", Spec{})
	x.host.Run = func(context.Context, ...string) (string, error) {
		return "", errors.New("Failed to connect to bus: No medium found")
	}
	if _, err := x.Install(t.Context()); err == nil || !strings.Contains(err.Error(), "enable-linger me") {
		t.Errorf("Install() without a session = %v, want what to do", err)
	}
	if left, _ := os.ReadDir(x.dir()); len(left) > 0 || len(m.told) > 0 {
		t.Errorf("the folder has %v, want nothing", left)
	}
	if err := NeedUser("no-such-user-of-yaya"); err == nil || !strings.Contains(err.Error(), "useradd --system") {
		t.Errorf("NeedUser() = %v, want how to create one", err)
	}
}

// OP-90: addresses of yaya as systemd writes them.
func TestListenStream(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:8787": "127.0.0.1:8787", ":443": "443", "localhost:80": "127.0.0.1:80", "[::1]:8443": "[::1]:8443", "0.0.0.0:https": "0.0.0.0:443",
		"host.example:80": "", "127.0.0.1:0": "", "nothing": "",
	} {
		got, err := ListenStream(addr)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("ListenStream(%s) = %q, %v; want %q", addr, got, err, want)
		}
	}
}
