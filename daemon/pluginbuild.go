package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/plugins/installed"
	"github.com/yaya-ai/yaya/plugins/remote"
)

// buildTime bounds a build. The first one compiles Go's own library, too.
const buildTime = 10 * time.Minute

// build builds the program of a plugin in Go, and returns its path, which the package's end
// removes. The modules that it requires are downloaded as its go.sum says; the compiler then runs
// in a sandbox without a network that reads the plugin's files and cannot write them.
func (t *thirdParty) build(ctx context.Context, p *installed.Package, folder string) (_ string, err error) {
	work, err := p.Temporary()
	if err != nil {
		return "", err
	}
	client := t.client()
	if err := client.Modules(ctx, folder, work); err != nil {
		return "", err
	}
	out := filepath.Join(work, "out")
	for _, dir := range []string{out, filepath.Join(work, "modules")} {
		if err := os.MkdirAll(dir, 0o700); err != nil { //nolint:forbidigo // in a folder that was made here
			return "", err
		}
	}
	program := filepath.Join(out, "program")
	run, err := t.builder(p.Description.Name, folder, filepath.Join(work, "modules"), out)
	if err != nil {
		return "", err
	}
	spec := proc.Spec{
		Path: "go", Args: []string{"build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-o", program, "."}, Dir: folder,
		Env: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + t.c.st.sandboxes.Home, "CGO_ENABLED=0", "GOMODCACHE=" + filepath.Join(work, "modules"), "GOPROXY=off", "GOSUMDB=off",
			"GOFLAGS=", "GOENV=off", "GOWORK=off", "GOTOOLCHAIN=local", "GO111MODULE=on",
		},
	}
	if run.Enforced.Backend == sandbox.None {
		run.Ended() // nothing is enforced, as the user's settings say
	} else {
		spec.Sandbox = run
	}
	started, err := t.c.procs.Start(spec)
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("the command go is not in PATH: install Go (https://go.dev/dl)")
	}
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, buildTime, fmt.Errorf("it took more than %v", buildTime))
	defer cancel()
	read := make(chan struct{})
	go func() { // go build prints nothing; a full pipe would stop it
		defer close(read)
		_, _ = io.Copy(io.Discard, started.Stdout)
	}()
	_ = started.Stdin.Close() // it reads nothing
	select {
	case <-started.Done():
	case <-ctx.Done():
	}
	started.Kill()
	<-read
	if cause := context.Cause(ctx); cause != nil {
		return "", cause
	}
	if started.ExitCode() != 0 {
		return "", fmt.Errorf("go build failed: %w: %s", started.Err(), strings.NewReplacer(work, "…", folder, "…").Replace(strings.TrimSpace(started.Stderr())))
	}
	return program, nil
}

// buildsWhere says when and how a build runs, as the settings and this machine are now.
func (t *thirdParty) buildsWhere() string {
	policy, err := t.c.st.sandboxes.Policy("server", "")
	if err == nil {
		policy.Net, policy.Require = sandbox.Net{Mode: sandbox.Off}, remote.Needs
		var here sandbox.Enforced
		if here, err = t.c.st.sandboxes.Here(policy); err == nil && here.Backend != sandbox.None {
			return "after your answer, in a sandbox without a network"
		}
	}
	if err != nil {
		return "after your answer; now it would be refused: " + err.Error()
	}
	return "after your answer, WITHOUT a sandbox"
}

// builder makes the sandbox of a build.
func (t *thirdParty) builder(name, folder, modules, out string) (_ *sandbox.Run, err error) {
	boxes := t.c.st.sandboxes
	policy, err := boxes.Policy("server", "plugin-build-"+name)
	if err != nil {
		return nil, err
	}
	policy.Net, policy.Require, policy.Limits.Time = sandbox.Net{Mode: sandbox.Off}, remote.Needs, buildTime+time.Minute
	policy.Hide = append(policy.Hide, boxes.Cache)
	defer func() {
		if err != nil {
			err = errors.Join(err, sandbox.Close(policy.Read), sandbox.Close(policy.Write))
		}
	}()
	for _, at := range []string{folder, modules} {
		opened, err := sandbox.OpenExact(at)
		if err != nil {
			return nil, err
		}
		policy.Read = append(policy.Read, opened)
	}
	opened, err := sandbox.OpenExact(out)
	if err != nil {
		return nil, err
	}
	policy.Write = append(policy.Write, opened)
	for _, at := range sandbox.RuntimesOf(boxes.Home, os.Getenv("PATH")) {
		if opened, err := sandbox.Open(at); err == nil { // otherwise there is nothing to show
			policy.Runtimes = append(policy.Runtimes, opened)
		}
	}
	return boxes.Enter(policy)
}
