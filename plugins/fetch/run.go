package fetch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/agentpackage"
	"github.com/yaya-ai/yaya/internal/proc"
)

// Limits of one fetch, beside those of a plugin's files.
const (
	DefaultTime = 2 * time.Minute
	maxOutput   = 16 << 20 // bytes that a client prints
	lookEach    = 100 * time.Millisecond
)

// Client fetches sources.
type Client struct {
	Procs *proc.Manager
	// Env is yaya's environment, as [os.Environ] returns it. Clients get the variables that set
	// them up.
	Env []string
	// Time bounds a fetch, and Bytes what its clients may write; the defaults are [DefaultTime]
	// and twice [MaxBytes], because a client keeps a package packed and unpacked.
	Time  time.Duration
	Bytes int64
}

// Fetched are the files of a package.
type Fetched struct {
	Source   Source // with the exact version
	Resolved string // what the version is: a commit, or the digest of the package
	Folder   string // with the plugin.toml
	work     string
}

// Close removes the files.
func (f *Fetched) Close() error { return os.RemoveAll(f.work) } //nolint:forbidigo // made here, with a name of its own

// Fetch fetches a source. Close what it returns.
func (c *Client) Fetch(ctx context.Context, s Source) (_ *Fetched, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(c.Time, DefaultTime), fmt.Errorf("it took more than %v", cmp.Or(c.Time, DefaultTime)))
	defer cancel()
	work, err := os.MkdirTemp("", "yaya-plugin-")
	if err != nil {
		return nil, err
	}
	f := &Fetched{Source: s, work: work}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("fetch %s: %w", s, err), f.Close())
		}
	}()
	if f.work, err = filepath.EvalSymlinks(work); err != nil {
		return nil, err
	}
	// A client reads settings of a project in the folders above its own. They end here.
	for _, name := range []string{"run", "files", "got", "tmp"} {
		if err := os.Mkdir(filepath.Join(f.work, name), 0o700); err != nil { //nolint:forbidigo // made here
			return nil, err
		}
	}
	j := &job{c: c, f: f, dir: filepath.Join(f.work, "run"), files: filepath.Join(f.work, "files"), got: filepath.Join(f.work, "got")}
	switch s.Kind {
	case Git:
		err = j.git(ctx)
	case NPM:
		err = j.npm(ctx)
	case PyPI:
		err = j.pypi(ctx)
	case Go:
		err = j.module(ctx)
	default:
		err = fmt.Errorf("there is no kind %q of sources", s.Kind)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// job is one fetch.
type job struct {
	c     *Client
	f     *Fetched
	dir   string // where clients run, with nothing of the package in it
	got   string // what they have downloaded
	files string // the unpacked package
}

// passed are the variables that clients get, by their whole name, and passedWith by its start:
// what says where registries are, and how one gets there.
var (
	passed = []string{
		"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "SSH_AUTH_SOCK", "VIRTUAL_ENV", "NODE_EXTRA_CA_CERTS", "NPM_TOKEN", "NODE_AUTH_TOKEN", "NETRC",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
		"GOPROXY", "GOPRIVATE", "GONOPROXY", "GONOSUMDB", "GOSUMDB", "GOINSECURE", "GOAUTH", "GOENV", "GOROOT", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO",
	}
	passedWith = []string{"LC_", "XDG_", "SSL_CERT_", "PIP_", "npm_config_", "NPM_CONFIG_", "PYENV_", "NVM_"}
)

func (c *Client) environ(more []string) []string {
	var env []string
	for _, kv := range c.Env {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(passed, name) || slices.ContainsFunc(passedWith, func(start string) bool { return strings.HasPrefix(name, start) }) {
			env = append(env, kv)
		}
	}
	return append(env, more...)
}

// program is a client.
type program struct {
	name, remedy string
	env          []string
	stdin        io.Reader // nil for none
}

// run runs a client until it ends. read reads what it prints, up to the end; an error of read ends
// the client.
func (j *job) run(ctx context.Context, p program, args []string, read func(io.Reader) error) error {
	return j.c.run(ctx, p, args, j.dir, j.f.work, read)
}

func (c *Client) run(ctx context.Context, p program, args []string, dir, work string, read func(io.Reader) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	started, err := c.Procs.Start(proc.Spec{Path: p.name, Args: args, Env: c.environ(append(p.env, "TMPDIR="+filepath.Join(work, "tmp"))), Dir: dir}) // pip downloads to TMPDIR: what is there counts
	if errors.Is(err, exec.ErrNotFound) {
		return &ClientError{fmt.Errorf("the command %s is not in PATH: %s", p.name, p.remedy)}
	}
	if err != nil {
		return &ClientError{fmt.Errorf("start %s: %w", p.name, err)}
	}
	var tasks sync.WaitGroup
	tasks.Go(func() { c.watch(ctx, cancel, work, started.Done()) })
	tasks.Go(func() {
		select {
		case <-ctx.Done():
			started.Kill()
		case <-started.Done():
		}
	})
	var fed error
	tasks.Go(func() {
		if p.stdin != nil {
			_, fed = io.Copy(started.Stdin, p.stdin)
		}
		_ = started.Stdin.Close() // a client that has ended has closed it
	})
	err = read(started.Stdout)
	if err != nil {
		cancel(err)
	}
	<-started.Done()
	tasks.Wait()
	// Where it was fetched to is gone, and says nothing to anybody.
	said := strings.NewReplacer(work, "…", dir, "…").Replace(strings.TrimSpace(started.Stderr()))
	switch cause := context.Cause(ctx); {
	case err != nil && errors.Is(cause, err): // what it printed is wrong
		return err
	case cause != nil:
		return &ClientError{cause}
	case started.ExitCode() != 0 && said != "":
		return &ClientError{&saidError{p.name, said}}
	case started.ExitCode() != 0:
		return &ClientError{fmt.Errorf("%s failed: %w", p.name, started.Err())}
	}
	return fed
}

// saidError has what a client that failed has said.
type saidError struct{ client, said string }

// Error has the beginning and the end: npm names the reason first, pip and git last, and what shows
// an error cuts it.
func (e *saidError) Error() string {
	const head, tail = 100, 250
	said := e.said
	if len(said) > head+tail {
		said = strings.ToValidUTF8(said[:head], "") + " … " + strings.ToValidUTF8(said[len(said)-tail:], "")
	}
	return e.client + " failed: " + said
}

// says reports whether a client has failed and has said that.
func says(err error, text string) bool {
	e, ok := errors.AsType[*saidError](err)
	return ok && strings.Contains(e.said, text)
}

// ClientError is the failure of a client: it is missing, has failed, or has met a limit. Every
// other error says what is wrong with the package.
type ClientError struct{ err error }

func (e *ClientError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *ClientError) Unwrap() error { return e.err }

// output runs a client and returns what it prints.
func (j *job) output(ctx context.Context, p program, args ...string) ([]byte, error) {
	var out bytes.Buffer
	err := j.run(ctx, p, args, func(in io.Reader) error {
		n, err := io.Copy(&out, io.LimitReader(in, maxOutput+1))
		if n > maxOutput {
			return fmt.Errorf("%s prints more than %d MiB", p.name, maxOutput>>20)
		}
		return closed(err)
	})
	return out.Bytes(), err
}

// closed passes over the end of a pipe whose process was ended.
func closed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// watch ends a client that writes too much: clients have no limit of their own.
func (c *Client) watch(ctx context.Context, cancel context.CancelCauseFunc, work string, done <-chan struct{}) {
	limit := cmp.Or(c.Bytes, 2*MaxBytes)
	tick := time.NewTicker(lookEach)
	defer tick.Stop()
	for {
		select {
		case <-done:
			if size(work, limit) > limit { // it was quicker than a look
				cancel(fmt.Errorf("it is larger than %d MiB", limit>>20))
			}
			return
		case <-ctx.Done():
			return
		case <-tick.C:
			if size(work, limit) > limit {
				cancel(fmt.Errorf("it is larger than %d MiB", limit>>20))
				return
			}
		}
	}
}

// size returns the bytes in a folder that changes meanwhile, each file counted as one block at
// least, and stops to count beyond the limit.
func size(dir string, limit int64) (total int64) {
	const block = 4096
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error { // what cannot be read is not counted
		if err != nil {
			return nil //nolint:nilerr // it has just been removed
		}
		if info, err := d.Info(); err == nil {
			total += max(info.Size(), block)
		}
		if total > limit {
			return fs.SkipAll
		}
		return nil
	})
	return total
}

// unpacked finds the plugin in what was unpacked: at the top, or in the one folder there is
// beside those that skip names.
func (j *job) unpacked(skip func(name string) bool) error {
	folder, err := Top(j.files, skip)
	j.f.Folder = folder
	return err
}

// Top returns the folder of a plugin in what was unpacked into a folder: that one, or the only
// one in it, without those that skip names.
func Top(at string, skip func(name string) bool) (string, error) {
	root, err := os.OpenRoot(at)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	has := func(name string) bool {
		_, err := root.Lstat(name)
		return err == nil
	}
	if has("plugin.toml") || agentpackage.Is(has) {
		return at, nil
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return "", err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return skip != nil && skip(e.Name()) })
	if len(entries) == 1 && entries[0].IsDir() {
		return filepath.Join(at, entries[0].Name()), nil
	}
	return at, nil // whoever reads it says what is missing
}
