package daemon

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/secrets"
	"github.com/yaya-ai/yaya/internal/unread"
	"github.com/yaya-ai/yaya/internal/userfile"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/config"
)

// Paths are the places where yaya keeps things.
type Paths struct {
	Data   string
	Config string
	Home   string
	// readOnly says that the data directory is another process's, and stays as it is.
	readOnly bool
}

// Paths returns the folders that the flags name, or those that XDG says, on Windows those of
// the user's application data.
func (g *Flags) Paths() (Paths, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return Paths{}, fmt.Errorf("no home directory: %w; set HOME, or --data-dir and --config-dir", err)
	}
	p := Paths{Data: g.DataDir, Config: g.ConfigDir, Home: home}
	if p.Data == "" {
		p.Data = filepath.Join(userFolder("XDG_STATE_HOME", home, usualState), "yaya")
	}
	if p.Config == "" {
		p.Config = filepath.Join(userFolder("XDG_CONFIG_HOME", home, usualConfig), "yaya")
	}
	if p.Data, err = filepath.Abs(p.Data); err != nil {
		return Paths{}, err
	}
	p.Config, err = filepath.Abs(p.Config)
	return p, err
}

// userFolder is [xdg], on Windows the folder that the system has for such data: the state stays
// on this machine (LocalAppData), the configuration may roam (AppData).
func userFolder(key, home, fallback string) string {
	if dir := os.Getenv(systemFolder[key]); runtime.GOOS == "windows" && !filepath.IsAbs(os.Getenv(key)) && filepath.IsAbs(dir) {
		return dir
	}
	return xdg(key, home, fallback)
}

// systemFolder names the variables of Windows that stand for those of XDG.
var systemFolder = map[string]string{"XDG_STATE_HOME": "LOCALAPPDATA", "XDG_CONFIG_HOME": "APPDATA"}

// Folders below the home directory that hold yaya's own, unless XDG says others.
const (
	usualState  = ".local/state"
	usualConfig = ".config"
)

func xdg(key, home, fallback string) string {
	if dir := os.Getenv(key); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(home, fallback)
}

// Own are the folders that no tool reaches, whatever it is told.
func (p Paths) Own() []workspace.Own {
	return []workspace.Own{
		{Name: "data folder", Path: p.Data, Move: "--data-dir"},
		{Name: "key folder", Path: filepath.Join(p.Data, "keys"), Move: "--data-dir"},
		{Name: "configuration folder", Path: p.Config, Move: "--config-dir"},
	}
}

// Passphrase is the file of the passphrase of the secrets, "" without one.
func Passphrase() string {
	file := os.Getenv(secrets.PassphraseVariable)
	if file == "" {
		return ""
	}
	if abs, err := filepath.Abs(file); err == nil {
		return abs
	}
	return file
}

// Hidden are the folders and files that no sandbox shows.
func Hidden(own []workspace.Own) (out []string) {
	for _, o := range own {
		out = append(out, o.Path)
	}
	if file := Passphrase(); file != "" {
		out = append(out, file)
	}
	return out
}

// Socket is the path of the socket by which commands reach the daemon.
func (p Paths) Socket() string { return filepath.Join(p.Data, "yaya.sock") }

// Names of the files of the configuration folder.
const (
	serversName  = "mcp.json"
	settingsName = "config.toml"
)

// Servers is the file of MCP servers.
func (p Paths) Servers() string  { return filepath.Join(p.Config, serversName) }
func (p Paths) settings() string { return filepath.Join(p.Config, settingsName) }

// MaxSocketPath is the length that every Unix accepts for the path of a socket.
const MaxSocketPath = 103

// OpenData creates the data directory for its owner only and opens it. If it is there and
// others can reach it, that ends.
func (p Paths) OpenData() (*os.Root, error) {
	root, _, err := p.openData()
	return root, err
}

// openData is OpenData, with notes for the log.
func (p Paths) openData() (*os.Root, []string, error) {
	return p.openDataAs(func(root *os.Root) ([]string, error) {
		if p.readOnly {
			_, err := checkFormat(root)
			return nil, err
		}
		return current(root)
	})
}

// openDataAs is openData, with what takes the directory to the present format.
func (p Paths) openDataAs(upgrade func(*os.Root) ([]string, error)) (root *os.Root, notes []string, err error) {
	if err := os.MkdirAll(p.Data, 0o700); err != nil { //nolint:forbidigo // the root of all other access
		return nil, nil, fmt.Errorf("data directory: %w", err)
	}
	if root, err = os.OpenRoot(p.Data); err != nil {
		return nil, nil, fmt.Errorf("data directory: %w", err)
	}
	if notes, err = keepPrivate(root, os.Geteuid()); err != nil {
		return nil, nil, errors.Join(err, root.Close())
	}
	more, err := upgrade(root)
	if err != nil {
		return nil, nil, errors.Join(err, root.Close())
	}
	if err := p.enlist(); err != nil {
		more = append(more, "the data directory cannot be entered in the list of data directories, so programs in sandboxes of this user's other yayas may read it: "+err.Error())
	}
	return root, append(notes, more...), nil
}

// settingsFile is the file that settings are read from.
func (g *Flags) settingsFile(p Paths) string {
	if g.ConfigFile != "" {
		return g.ConfigFile
	}
	return p.settings()
}

// Open opens the data directory and the settings, in all their layers.
func (g *Flags) Open(p Paths, flags map[string]string) (*os.Root, *config.Store, error) {
	file := g.settingsFile(p)
	content, found, err := userfile.Read(file)
	if err != nil {
		return nil, nil, err
	}
	if !found && g.ConfigFile != "" {
		return nil, nil, fmt.Errorf("there is no file %s", file)
	}
	data, err := p.OpenData()
	if err != nil {
		return nil, nil, err
	}
	settings, err := config.Open(config.Options{Root: data, File: content, FileName: file, Env: os.Environ(), Flags: flags})
	if err != nil {
		if cerr := config.Check(data); unread.Is(cerr) {
			err = fmt.Errorf("%s: %s", filepath.Join(data.Name(), "config.json"), unread.Problem(cerr))
		} else if cerr != nil {
			err = fmt.Errorf("%w; mend it: yaya repair", err)
		}
		return nil, nil, errors.Join(err, data.Close())
	}
	g.Vault = g.openVault(p, data)
	settings.Keep(vault{g.Vault})
	return data, settings, nil
}

// lockName is the file in the data directory whose lock its daemon holds.
const lockName = "yaya.lock"

var errRunning = errors.New("yaya is already running")

// lockFile makes this process the only daemon of a data directory, until the returned file and
// its duplicates are closed.
func lockFile(root *os.Root) (*os.File, error) {
	f, err := root.OpenFile(lockName, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := hostfile.TryLock(f); err != nil {
		pid, _ := io.ReadAll(io.LimitReader(f, 32)) //nolint:forbidigo // bounded by the reader
		_ = f.Close()
		if errors.Is(err, hostfile.ErrLocked) {
			return nil, fmt.Errorf("%w on %s (process %s); stop it, or choose another --data-dir; a yaya chat or yaya acp that runs alone has the directory for itself: with yaya serve, any number of them share it", errRunning, root.Name(), strings.TrimSpace(string(pid)))
		}
		return nil, fmt.Errorf("lock: %w", err)
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock: %w", err)
	}
	return f, nil
}

// lock is lockFile; the returned function lets go of it.
func lock(root *os.Root) (func(), error) {
	f, err := lockFile(root)
	if err != nil {
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// relock takes over a lock that the program before this one had in this process.
func relock(root *os.Root, have *os.File) (*os.File, error) {
	is, err := have.Stat()
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	wanted, err := root.Stat(lockName)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if !os.SameFile(is, wanted) {
		return nil, fmt.Errorf("lock: %s has been replaced while yaya restarted: stop yaya and start it", filepath.Join(root.Name(), lockName))
	}
	return duplicate(have)
}
