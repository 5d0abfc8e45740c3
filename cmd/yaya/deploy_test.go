package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/freeport"
)

var (
	deployFolder = filepath.Join("..", "..", "deploy")
	chartFolder  = filepath.Join(deployFolder, "helm", "yaya")

	// yayaCommand is a command of yaya in a text, with the rest of its line.
	yayaCommand = regexp.MustCompile(`\byaya ((?:cluster|token|device|mcp) [a-z]+|serve)\b([^|\n]*)`)
	// chartArgument is a flag in the arguments of the chart's container.
	chartArgument = regexp.MustCompile(`(?m)^ +- (--[a-z-]+)`)
	aFlag         = regexp.MustCompile(`(?:^|[\s}])(--[a-z][a-z-]*)`)
	healthPath    = regexp.MustCompile(`(?:8787|health_uri )(/[a-z]+)`)
)

// deployTexts are the files that describe containers, by path.
func deployTexts(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, at := range []string{"Dockerfile", "compose", "helm"} {
		err := filepath.WalkDir(filepath.Join(deployFolder, at), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			raw, err := os.ReadFile(path)
			out[path] = string(raw)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// Every command and flag of yaya that the files for containers name exists, and so do the paths
// that probes ask.
func TestDeployNamesWhatExists(t *testing.T) {
	b := newBox(t)
	help := map[string]string{}
	has := func(path, command, flag string) {
		t.Helper()
		if help[command] == "" {
			help[command] = b.must(append(strings.Fields(command), "--help")...)
			if !strings.Contains(help[command], "yaya "+command) {
				t.Errorf("%s: there is no command yaya %s", path, command)
			}
		}
		if flag != "" && !regexp.MustCompile(`(?m)^ +`+flag+`\b`).MatchString(help[command]) {
			t.Errorf("%s: yaya %s has no flag %s", path, command, flag)
		}
	}
	routes, err := os.ReadFile(filepath.Join("..", "..", "gateway", "testdata", "routes.golden"))
	if err != nil {
		t.Fatal(err)
	}
	commands, flags, paths := 0, 0, 0
	for path, text := range deployTexts(t) {
		for _, m := range yayaCommand.FindAllStringSubmatch(text, -1) {
			commands++
			has(path, m[1], "")
			for _, f := range aFlag.FindAllStringSubmatch(m[2], -1) {
				flags++
				has(path, m[1], f[1])
			}
		}
		if filepath.Base(path) == "statefulset.yaml" {
			for _, m := range chartArgument.FindAllStringSubmatch(text, -1) {
				flags++
				has(path, "serve", m[1])
			}
		}
		for _, m := range healthPath.FindAllStringSubmatch(text, -1) {
			paths++
			if !bytes.Contains(routes, []byte("GET "+m[1])) {
				t.Errorf("%s asks %s, which is not in the table of routes", path, m[1])
			}
		}
	}
	if commands < 10 || flags < 20 || paths < 6 {
		t.Errorf("found %d commands, %d flags and %d paths: are the patterns right?", commands, flags, paths)
	}
}

// The image is built as make build does, on the Go of go.mod.
func TestImageIsBuiltLikeMake(t *testing.T) {
	texts := map[string]string{}
	for _, name := range []string{"Makefile", "go.mod", "deploy/Dockerfile"} {
		raw, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(raw)
	}
	word := func(name, pattern string) string {
		m := regexp.MustCompile(pattern).FindStringSubmatch(texts[name])
		if m == nil {
			t.Fatalf("%s has nothing like %s", name, pattern)
		}
		return m[1]
	}
	dockerfile := texts["deploy/Dockerfile"]
	ldflags := strings.NewReplacer("$(STRIP)", word("Makefile", `(?m)^STRIP +:= (.*)$`), "$(STAMP)", word("Makefile", `(?m)^STAMP +:= (.*)$`),
		"$(COMMIT)", "$VERSION", "$(DIGEST)", "$COMMIT", "$(AT)", "$COMMITTED").Replace(word("Makefile", `(?m)^LDFLAGS +:= (.*)$`))
	for _, want := range []string{
		"-trimpath -tags " + word("Makefile", `(?m)^TAGS +:= (.*)$`), `-ldflags "` + ldflags + `"`,
		word("Makefile", `GOFLAGS \+= (.*)`), "golang:" + word("go.mod", `(?m)^go (\d+\.\d+)`) + "-", "CGO_ENABLED=0", "USER 65532:65532",
	} {
		if !strings.Contains(dockerfile, want) {
			t.Errorf("deploy/Dockerfile does not have %q", want)
		}
	}
}

// The values of the chart: its schema refuses those that need an answer, takes those of the
// checks, and knows every value that a template uses.
func TestChartValues(t *testing.T) {
	c := jsonschema.NewCompiler()
	raw, err := os.Open(filepath.Join(chartFolder, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	doc, err := jsonschema.UnmarshalJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("values", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("values")
	if err != nil {
		t.Fatal(err)
	}
	defaults, checks := chartValues(t, "values.yaml"), chartValues(t, filepath.Join("testdata", "values.yaml"))
	err = schema.Validate(defaults)
	for _, required := range []string{"/host", "/proxies", "/nats/url", "/image/repository"} {
		if err == nil || !strings.Contains(err.Error(), required) {
			t.Errorf("the defaults: %v, want a refusal of %s", err, required)
		}
	}
	merge(defaults, checks)
	if err := schema.Validate(defaults); err != nil {
		t.Errorf("the values of the checks: %v", err)
	}
	for name, change := range map[string]func(nats map[string]any){
		"a password in the URL":     func(nats map[string]any) { nats["url"] = "nats://yaya:secret@nats:4222" },
		"a CA without a Secret":     func(nats map[string]any) { nats["secret"] = "" },
		"an unknown value":          func(nats map[string]any) { nats["user"] = "yaya" },
		"two servers keep the log":  func(nats map[string]any) { nats["replicas"] = 2 },
		"a host that is not a name": func(map[string]any) { defaults["host"] = "https://gate.example" },
	} {
		nats := map[string]any{}
		merge(nats, defaults["nats"].(map[string]any))
		before, host := defaults["nats"], defaults["host"]
		change(nats)
		defaults["nats"] = nats
		if schema.Validate(defaults) == nil {
			t.Errorf("%s: accepted", name)
		}
		defaults["nats"], defaults["host"] = before, host
	}
	used := regexp.MustCompile(`\.Values((?:\.[a-zA-Z]+)+)`)
	n := 0
	for path, text := range deployTexts(t) {
		if !strings.Contains(path, "templates") {
			continue
		}
		for _, m := range used.FindAllStringSubmatch(text, -1) {
			n++
			var at any = chartValues(t, "values.yaml")
			for key := range strings.SplitSeq(m[1][1:], ".") {
				of, _ := at.(map[string]any)
				v, is := of[key]
				if !is {
					t.Errorf("%s uses .Values%s, which values.yaml does not have", path, m[1])
					break
				}
				at = v
			}
		}
	}
	if n < 20 {
		t.Errorf("the templates use %d values: is the pattern right?", n)
	}
}

// The init container of the chart waits until the yaya in its volume is a node, and ends when it is
// told to.
func TestChartWaitsForTheNode(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(chartFolder, "templates", "statefulset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, script, _ := strings.Cut(string(raw), "            - |\n")
	script, _, found := strings.Cut(script, "          securityContext:")
	if !found || strings.Contains(script, "{{") {
		t.Fatalf("the script of the init container is %q, want one without templates", script)
	}
	b := newBox(t)
	wait := func() started {
		p := started{Cmd: exec.Command("sh", "-c", script), said: new(output), exited: make(chan struct{})} //nolint:forbidigo,noctx // stopped below
		p.Env, p.Dir, p.Stdout, p.Stderr = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir}, b.dir, p.said, p.said
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		go func() { _ = p.Wait(); close(p.exited) }()
		t.Cleanup(func() { _ = p.Process.Signal(syscall.SIGTERM); <-p.exited })
		eventually.True(t, "the init container says what it waits for", func() bool { return strings.Contains(p.said.String(), "not a node yet") })
		return p
	}
	stopped := wait()
	if err := stopped.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-stopped.exited
	if got := stopped.ProcessState.ExitCode(); got != 143 {
		t.Errorf("exit code %d after SIGTERM, want 143", got)
	}
	waits := wait()
	founds := exec.CommandContext(t.Context(), b.bin, "cluster", "init", "--name", "gate-0", "--listen", freeport.Addr(t))
	founds.Env, founds.Dir = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir}, b.dir
	if out, err := founds.CombinedOutput(); err != nil {
		t.Fatalf("cluster init beside it: %v, %s", err, out)
	}
	<-waits.exited
	if got := waits.ProcessState.ExitCode(); got != 0 {
		t.Errorf("exit code %d with a node in the volume, want 0", got)
	}
}

// chartValues reads a file of values as JSON would have it.
func chartValues(t *testing.T, file string) map[string]any {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(chartFolder, file))
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := yaml.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	if raw, err = json.Marshal(v); err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// merge adds values to others, as helm does.
func merge(to, from map[string]any) {
	for k, v := range from {
		a, isA := to[k].(map[string]any)
		b, isB := v.(map[string]any)
		if isA && isB {
			merge(a, b)
		} else {
			to[k] = v
		}
	}
}
