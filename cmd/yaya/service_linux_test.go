package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// OP-90, OP-94: the command prints units with the paths of this yaya, refuses flags that yaya
// serve would refuse, and says what to do without a service manager.
func TestServiceCommand(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	data := filepath.Join(b.dir, "d %h \"q\"")
	out, err := exec.CommandContext(t.Context(), b.bin, "--data-dir", data, "service", "install", "--print", "--socket", "--", "--listen", ":8443", "--tls-self-signed", "--host", "yaya.local").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ExecStart=", `"` + strings.NewReplacer("%", "%%", `"`, `\"`).Replace(data) + `"`, "--host=yaya.local", "ListenStream=8443", "ListenStream=127.0.0.1:8787", "FileDescriptorName=local", "WatchdogSec=", "WantedBy=default.target"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("yaya service install --print has no %s:\n%s", want, out)
		}
	}
	for args, want := range map[string]string{
		"--print x":                        "come after --",
		"--print -- x":                     `no argument "x"`,
		"--print -- --nope":                "unknown flag --nope",
		"--print -- --acme":                "--acme needs --host",
		"--print -- --mcp-config none":     "there is no file none",
		"--print --socket -- --listen a:1": "not at names",
	} {
		if out, err := b.run(append([]string{"service", "install"}, strings.Fields(args)...)...); exitCode(err) != 2 || !strings.Contains(out, want) {
			t.Errorf("yaya service install %s = %v, %s; want exit code 2 and %q", args, err, out, want)
		}
	}
	b.env = append(b.env, "XDG_CONFIG_HOME="+filepath.Join(b.dir, "c"), "SUDO_USER=")
	wantCode, want := 4, "not installed"
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		wantCode, want = 1, "keep it running"
		if out, err := b.run("service", "install"); exitCode(err) != 1 || !strings.Contains(out, want) || !strings.Contains(out, b.bin) {
			t.Errorf("yaya service install without systemd = %v, %s; want %q", err, out, want)
		}
	}
	if out, err := b.run("service", "status"); exitCode(err) != wantCode || !strings.Contains(out, want) {
		t.Errorf("yaya service status = %v, %s; want exit code %d and %q", err, out, wantCode, want)
	}
}
