package main

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/internal/eventually"
)

func (b *box) file(elem ...string) string {
	return filepath.Join(append([]string{b.dir, "d"}, elem...)...)
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return -1
}

// enroll enrolls a device by a code.
func (b *box) enroll(id string) {
	b.t.Helper()
	pub, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		b.t.Fatal(err)
	}
	body, err := json.Marshal(map[string]string{"device_id": id, "label": id, "public_key": base64.StdEncoding.EncodeToString(pub), "code": b.invite("default")})
	if err != nil {
		b.t.Fatal(err)
	}
	resp, err := http.Post("http://"+b.addr+"/auth/register", "application/json", bytes.NewReader(body)) //nolint:forbidigo,noctx // test
	if err != nil {
		b.t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b.t.Fatalf("device %s: %s", id, resp.Status)
	}
}

// day is a day of a yaya with devices: changes, restarts, a crash, and commands
// without a daemon.
func (b *box) day() {
	b.t.Helper()
	daemon := b.serve()
	for _, id := range []string{"phone", "laptop", "tablet"} {
		b.enroll(id)
	}
	b.must("device", "revoke", "phone")
	_ = daemon.Process.Signal(syscall.SIGTERM)
	gone(b.t, daemon)
	b.must("device", "invite")
	daemon = b.serve()
	b.enroll("watch")
	_ = daemon.Process.Kill() // kill -9
	gone(b.t, daemon)
	daemon = b.serve()
	b.must("device", "rotate-keys")
	_ = daemon.Process.Signal(syscall.SIGTERM)
	gone(b.t, daemon)
}

var recordID = regexp.MustCompile(`^\{"id":\d+,`)

// chained gives records ids and a chain that is right, as whoever can write the file
// can.
func chained(lines []string) string {
	var out strings.Builder
	prev := strings.Repeat("0", 32)
	for i, l := range lines {
		body := recordID.ReplaceAllString(l, `{"id":`+strconv.Itoa(i+1)+`,`)
		body = body[:strings.LastIndex(body, `,"prev":"`)] + `,"prev":"` + prev
		sum := sha256.Sum256([]byte(body))
		prev = hex.EncodeToString(sum[:16])
		out.WriteString(body + `","sum":"` + prev + "\"}\n")
	}
	return out.String()
}

// SEC-14: the audit of a day is whole; rewritten, cut, emptied, removed, chained again
// or appended to it is named by yaya verify, and yaya does not start on it.
func TestAuditIsSealed(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	b := newBox(t)
	b.day()
	out := b.must("verify")
	if !regexp.MustCompile(`audit: newest seal is entry \d+, [0-9a-f]{16}, of 20`).MatchString(out) || !strings.Contains(out, " 0 findings") {
		t.Errorf("yaya verify of a day: %s", out)
	}
	if out := b.must("audit"); strings.Contains(out, "log_sealed") || !strings.Contains(out, "device_enrolled") {
		t.Errorf("the audit is not the changes alone: %s", out)
	}
	if out := b.must("audit", "--event", "log_sealed"); strings.Count(out, `"at":"start"`) != 4 || strings.Count(out, `"at":"stop"`) != 3 {
		t.Errorf("the seals of 4 starts and 3 stops: %s", out)
	}
	log := b.file("control", "log.jsonl")
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	whole := string(data)
	lines := strings.Split(strings.TrimSuffix(whole, "\n"), "\n")
	invited := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, `"device_invited"`) })
	write := func(s string) func() error {
		return func() error { return os.WriteFile(log, []byte(s), 0o600) }
	}
	keep := func(name string) ([]byte, string) {
		p := b.file("keys", name)
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		return data, p
	}
	sealKey, sealFile := keep("seal.key")
	serverKey, serverFile := keep("server.key")
	head, headFile := keep("audit.head")
	for _, tt := range []struct {
		name   string
		attack func() error
		want   string
	}{
		{"an actor is changed", write(strings.Replace(whole, `"actor":"owner"`, `"actor":"thief"`, 1)), "its content does not match its sum"},
		{"a bit of the last entry is changed", write(strings.Join(lines[:len(lines)-1], "\n") + "\n" + strings.Replace(lines[len(lines)-1], `"log_sealed"`, `"log_sealee"`, 1) + "\n"), "its content does not match its sum"},
		{"an actor is changed, and the chain computed", write(chained(strings.Split(strings.TrimSuffix(strings.Replace(whole, `"actor":"owner"`, `"actor":"thief"`, 1), "\n"), "\n"))), "were changed after they had been sealed"},
		{"cut", write(strings.Join(lines[:len(lines)-4], "\n") + "\n"), "the log was cut"},
		{"emptied", write(""), "the log was emptied"},
		{"removed", func() error { return os.Remove(log) }, "the log was removed"},
		{"an entry is removed", write(chained(slices.Delete(slices.Clone(lines), invited, invited+1))), "the log was chained again"},
		{"all seals are removed", write(chained(slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.Contains(l, "log_sealed") }))), "the log was chained again"},
		{"appended to", write(chained(append(slices.Clone(lines), lines[invited]))), "appended after yaya had stopped"},
		{"the seal key is removed", func() error { return os.Remove(sealFile) }, "the key that seals the audit is missing"},
		{"the server's key is removed", func() error { return os.Remove(serverFile) }, "is missing"},
		{"all keys are removed", func() error { return os.RemoveAll(b.file("keys")) }, "missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := *b
			b.t = t
			if err := tt.attack(); err != nil {
				t.Fatal(err)
			}
			out, err := b.run("verify")
			if code := exitCode(err); code != 1 || !strings.Contains(out, "DAMAGED") || !strings.Contains(out, tt.want) {
				t.Errorf("yaya verify exits with %d and says %s, want 1 and %q", code, out, tt.want)
			}
			for _, read := range [][]string{{"audit"}, {"audit", "--json"}, {"audit", "export"}, {"audit", "export", "--follow"}} {
				out, err := b.run(read...)
				if exitCode(err) != 1 || !strings.Contains(out, tt.want) || !strings.Contains(out, b.file()) {
					t.Errorf("yaya %s: %v, %s, want exit code 1, %q and the data directory", strings.Join(read, " "), err, out, tt.want)
				}
				if tt.name == "cut" && !strings.Contains(out, "device_enrolled") {
					t.Errorf("yaya %s does not show the entries that are there: %s", strings.Join(read, " "), out)
				}
			}
			for _, start := range [][]string{{"serve", "--listen", b.addr}, {"device", "list"}} {
				if out, err := b.run(start...); exitCode(err) != 1 || !strings.Contains(out, tt.want) {
					t.Errorf("yaya %s: %v, %s, want %q", start[0], err, out, tt.want)
				}
			}
		})
		if err := errors.Join(os.MkdirAll(b.file("keys"), 0o700), os.WriteFile(headFile, head, 0o600),
			os.WriteFile(log, []byte(whole), 0o600), os.WriteFile(sealFile, sealKey, 0o600), os.WriteFile(serverFile, serverKey, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if out := b.must("verify"); !strings.Contains(out, " 0 findings") {
		t.Errorf("as it was: %s", out)
	}
}

// A data directory of a yaya without seals gets them at the next start, and verify
// says which entries they do not vouch for.
func TestAuditOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.day()
	log := b.file("control", "log.jsonl")
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	old := slices.DeleteFunc(strings.Split(strings.TrimSuffix(string(data), "\n"), "\n"), func(l string) bool { return strings.Contains(l, "log_sealed") })
	if err := errors.Join(os.WriteFile(log, []byte(chained(old)), 0o600), os.Remove(b.file("keys", "seal.key")), os.Remove(b.file("keys", "audit.head"))); err != nil {
		t.Fatal(err)
	}
	if out := b.must("verify"); !strings.Contains(out, "it was never sealed: the next start of yaya seals it") {
		t.Errorf("before: %s", out)
	}
	if out := b.must("device", "list"); !strings.Contains(out, "watch") {
		t.Errorf("the devices: %s", out)
	}
	if out := b.must("verify"); !strings.Contains(out, fmt.Sprintf("entries 1 to %d were not sealed when they were written", len(old))) || !strings.Contains(out, " 0 findings") {
		t.Errorf("afterwards: %s", out)
	}
}

// Every entry is a line, in both formats; with --follow those to come, also across
// a restart of the daemon, until it is interrupted.
func TestAuditExport(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	daemon := b.serve()
	b.enroll("phone")
	p := b.daemon("audit", "export", "--follow")
	heard := func(part string) {
		t.Helper()
		for deadline := time.Now().Add(eventually.Limit); !strings.Contains(p.said.String(), part); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("no %q in %s", part, p.said)
			}
		}
	}
	heard(`"event":"device_enrolled","actor":"phone"`)
	b.enroll("laptop")
	heard(`"event":"device_enrolled","actor":"laptop"`)
	_ = daemon.Process.Signal(syscall.SIGTERM)
	gone(t, daemon)
	daemon = b.serve()
	b.enroll("watch")
	heard(`"event":"device_enrolled","actor":"watch"`)
	_ = daemon.Process.Signal(syscall.SIGTERM)
	gone(t, daemon)
	all := b.must("audit", "export")
	heard(all[strings.LastIndex(strings.TrimSpace(all), "\n")+1:])
	_ = p.Process.Signal(syscall.SIGINT)
	<-p.exited
	if code := p.ProcessState.ExitCode(); code != 0 || p.said.String() != all {
		t.Errorf("followed until it was interrupted: exit code %d, and %d bytes, want 0 and the %d of all", code, len(p.said.String()), len(all))
	}
	var n int64
	for lines := bufio.NewScanner(strings.NewReader(all)); lines.Scan(); {
		var a control.Audit
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil || a.Index != n+1 {
			t.Fatalf("after entry %d: %s, %v", n, lines.Text(), err)
		}
		n = a.Index
	}
	cef := strings.Split(strings.TrimSuffix(b.must("audit", "export", "--format", "cef"), "\n"), "\n")
	shape := regexp.MustCompile(`^CEF:0\|yaya\|yaya\|[^|]+\|[a-z_.]+\|[a-z. ]+\|[15]\|rt=\d+ externalId=(\d+) suser=\S+ cs1Label=target cs1=\S* cs2Label=payload cs2=\{.*\}$`)
	for i, l := range cef {
		if m := shape.FindStringSubmatch(l); m == nil || m[1] != strconv.Itoa(i+1) {
			t.Errorf("line %d is not CEF: %s", i+1, l)
		}
	}
	if int64(len(cef)) != n {
		t.Errorf("%d lines of CEF, want %d", len(cef), n)
	}
	if out := b.must("audit", "export", "--since", "2100-01-01"); out != "" {
		t.Errorf("--since in the future: %s", out)
	}
	for name, args := range map[string][]string{"format": {"--format", "xml"}, "since": {"--since", "yesterday"}} {
		if out, err := b.run(append([]string{"audit", "export"}, args...)...); exitCode(err) != 2 || !strings.Contains(out, "--"+name) || strings.Contains(out, " is no ") {
			t.Errorf("--%s: %v, %s, want exit code 2", name, err, out)
		}
	}
	if err := os.Truncate(b.file("control", "log.jsonl"), 100); err != nil {
		t.Fatal(err)
	}
	if out, err := b.run("audit", "export"); exitCode(err) != 1 || !strings.Contains(out, "the log was emptied") || strings.Contains(out, `"event"`) {
		t.Errorf("half a record: %v, %s", err, out)
	}
}

// What actors, targets and payloads hold cannot end a field or a line, or do
// something to a terminal.
func TestAuditLines(t *testing.T) {
	nasty := "a|b=c\\d\n\x1b[31me\u202ef\u0085g"
	payload, err := json.Marshal(map[string]string{"k=|": nasty})
	if err != nil {
		t.Fatal(err)
	}
	a := control.Audit{Type: "audit", Event: "e|\\", Actor: nasty, Target: nasty, Index: 7, Payload: payload, Time: "2026-01-02T03:04:05.006Z"}
	line, err := jsonLine(a)
	if err != nil {
		t.Fatal(err)
	}
	var back control.Audit
	if err := json.Unmarshal(line, &back); err != nil || back.Actor != nasty || back.Target != nasty {
		t.Errorf("%s is read as %+v, %v", line, back, err)
	}
	var was, is map[string]string
	if err := errors.Join(json.Unmarshal(payload, &was), json.Unmarshal(back.Payload, &is)); err != nil || was["k=|"] != is["k=|"] {
		t.Errorf("payload %v, %v, want %v", is, err, was)
	}
	cef, err := cefLine(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range [][]byte{line, cef} {
		for _, r := range string(l) {
			if r < ' ' || r == '\u202e' || r == '\u0085' {
				t.Errorf("%q has %q", l, r)
			}
		}
	}
	want := `|e\|\\|e\|\\|5|rt=1767323045006 externalId=7 suser=a|b\=c\\d\n·[31me·f·g cs1Label=target cs1=a|b\=c\\d\n·[31me·f·g cs2Label=payload cs2={"k\=|":"a|b\=c\\\\d\\n\\u001b[31me\\u202ef\\u0085g"}`
	if got := string(cef); !strings.HasPrefix(got, "CEF:0|yaya|yaya|") || !strings.HasSuffix(got, want) {
		t.Errorf("got  %s\nwant …%s", got, want)
	}
}

// A damaged record is reported with the whole path of the file and the remedy, by
// all that read it; yaya verify says how far the seals vouch for what is there.
func TestDamagedAuditSaysWhatToDo(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.day()
	log := b.file("control", "log.jsonl")
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(data, []byte(`"log_sealed"`))
	data[at+1] ^= 1
	if err := os.WriteFile(log, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"audit"}, {"audit", "export"}, {"audit", "export", "--follow"}, {"device", "list"}, {"serve", "--listen", b.addr}} {
		if out, err := b.run(args...); exitCode(err) != 1 || !strings.Contains(out, log+": entry ") || !strings.Contains(out, "restore the file from a backup") {
			t.Errorf("yaya %s: got %v, %s; want exit code 1, %s and a remedy", strings.Join(args, " "), err, out, log)
		}
	}
	out, err := b.run("verify")
	if exitCode(err) != 1 || !strings.Contains(out, "newest seal is entry") || !strings.Contains(out, " 1 finding\n") {
		t.Errorf("yaya verify: got %v, %s; want exit code 1, one finding, and the newest good seal", err, out)
	}
}

// A folder without yaya's data is not whole data.
func TestVerifyOfAnotherFolder(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify", dir}, {"verify", "--json", dir}} {
		if out, err := b.run(args...); exitCode(err) != 1 || !strings.Contains(out, "there is no yaya data in "+dir) {
			t.Errorf("yaya %s: got %v, %s; want exit code 1 and that there is nothing", strings.Join(args, " "), err, out)
		}
	}
	b.must("config", "set", "loop.max_iterations", "3")
	if out := b.must("verify"); out != "2 files, 0 findings\n" { // they and VERSION
		t.Errorf("yaya verify of settings alone says %q, want two files and nothing wrong", out)
	}
}

// Y-191: a secret that somebody types in the place of a name does not reach the audit: not if
// there is nothing of that name, and not if there is.
func TestNamesInTheAuditAreMasked(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	const value = "Kettle-41-Orchard"
	file := filepath.Join(b.dir, "value")
	if err := os.WriteFile(file, []byte(value), 0o600); err != nil {
		t.Fatal(err)
	}
	b.must("secret", "set", "typed", "--file", file)
	b.must("mcp", "add", "good", "true")
	b.serve()
	folder := filepath.Join(b.dir, value)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
	}{
		{"mcp restart " + value, 1},
		{"mcp remove " + value, 1},
		{"mcp enable " + value, 1},
		{"mcp allow " + value + " --host a.example", 1},
		{"mcp approve --yes " + value, 1},
		{"session delete " + value, 1},
		{"token revoke " + value, 1},
		{"device revoke " + value, 1},
		{"token create " + value, 2},
		{"device invite --label " + value, 0},
		{"trust --yes " + folder, 0},
		{"trust revoke " + folder, 0},
		{"config set approval.rules [{\"tool\":\"" + value + "\",\"decision\":\"ask\"}]", 0},
		{"config set plugin." + value + ".x 1", 0},
		{"config unset plugin." + value + ".x", 0},
		{"mcp add " + value + " true", 0},
		{"mcp disable " + value, 0},
		{"mcp remove " + value, 0},
	} {
		if out, err := b.run(strings.Fields(c.args)...); exitCode(err) != c.code {
			t.Errorf("yaya %s: got %v, %s; want exit code %d", c.args, err, out, c.code)
		}
	}
	b.admin("POST", "/tools/"+value+"/call", `{"arguments":{}}`, 200, nil)
	log, err := os.ReadFile(b.file("control", "log.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(log) {
		if bytes.Contains(line, []byte(value)) {
			t.Errorf("the audit has a secret: %s", line)
		}
	}
	for _, event := range []string{"server_restarted", "tool_called", "tools_approved"} {
		if bytes.Contains(log, []byte(`"`+event+`"`)) {
			t.Errorf("the audit has %s of what does not exist: %s", event, log)
		}
	}
	if !bytes.Contains(log, []byte(`"target":"****"`)) {
		t.Errorf("the audit lacks the server that was removed: %s", log)
	}
}
