package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/yaya-ai/yaya/internal/secrets"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// paths are the places where yaya keeps things.
type paths struct {
	data   string
	config string
	home   string
}

func (g *globals) paths() (paths, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return paths{}, fmt.Errorf("no home directory: %w; set HOME, or --data-dir and --config-dir", err)
	}
	p := paths{data: g.dataDir, config: g.configDir, home: home}
	if p.data == "" {
		p.data = filepath.Join(xdg("XDG_STATE_HOME", home, ".local/state"), "yaya")
	}
	if p.config == "" {
		p.config = filepath.Join(xdg("XDG_CONFIG_HOME", home, ".config"), "yaya")
	}
	if p.data, err = filepath.Abs(p.data); err != nil {
		return paths{}, err
	}
	p.config, err = filepath.Abs(p.config)
	return p, err
}

func xdg(key, home, fallback string) string {
	if dir := os.Getenv(key); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(home, fallback)
}

// own are the folders that no tool reaches, whatever it is told.
func (p paths) own() []workspace.Own {
	return []workspace.Own{
		{Name: "data folder", Path: p.data, Move: "--data-dir"},
		{Name: "key folder", Path: filepath.Join(p.data, "keys"), Move: "--data-dir"},
		{Name: "configuration folder", Path: p.config, Move: "--config-dir"},
	}
}

// passphrase is the file of the passphrase of the secrets, "" without one.
func passphrase() string {
	file := os.Getenv(secrets.PassphraseVariable)
	if file == "" {
		return ""
	}
	if abs, err := filepath.Abs(file); err == nil {
		return abs
	}
	return file
}

// hidden are the folders and files that no sandbox shows.
func hidden(own []workspace.Own) (out []string) {
	for _, o := range own {
		out = append(out, o.Path)
	}
	if file := passphrase(); file != "" {
		out = append(out, file)
	}
	return out
}

func (p paths) socket() string   { return filepath.Join(p.data, "yaya.sock") }
func (p paths) servers() string  { return filepath.Join(p.config, "mcp.json") }
func (p paths) settings() string { return filepath.Join(p.config, "config.toml") }

// maxSocketPath is what every Unix takes for the path of a socket.
const maxSocketPath = 103

// openData creates the data directory for its owner only and opens it.
func (p paths) openData() (*os.Root, error) {
	if err := os.MkdirAll(p.data, 0o700); err != nil { //nolint:forbidigo // the root of all other access
		return nil, fmt.Errorf("data directory: %w", err)
	}
	root, err := os.OpenRoot(p.data)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	return root, nil
}

// settingsFile is the file that settings are read from.
func (g *globals) settingsFile(p paths) string {
	if g.configFile != "" {
		return g.configFile
	}
	return p.settings()
}

// open opens the data directory and the settings, in all their layers.
func (g *globals) open(p paths, flags map[string]string) (*os.Root, *config.Store, error) {
	file := g.settingsFile(p)
	content, found, err := readFile(file)
	if err != nil {
		return nil, nil, err
	}
	if !found && g.configFile != "" {
		return nil, nil, fmt.Errorf("there is no file %s", file)
	}
	data, err := p.openData()
	if err != nil {
		return nil, nil, err
	}
	settings, err := config.Open(config.Options{Root: data, File: content, FileName: file, Env: os.Environ(), Flags: flags})
	if err != nil {
		return nil, nil, errors.Join(err, data.Close())
	}
	g.vault = g.openVault(p, data)
	settings.Keep(vault{g.vault})
	return data, settings, nil
}

var errRunning = errors.New("yaya is already running")

// lock makes this process the only daemon of a data directory. The returned
// function lets go of it.
func lock(root *os.Root) (func(), error) {
	f, err := root.OpenFile("yaya.lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil { //nolint:gosec // a descriptor fits
		pid, _ := io.ReadAll(io.LimitReader(f, 32)) //nolint:forbidigo // bounded by the reader
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w on %s (process %s); stop it, or choose another --data-dir", errRunning, root.Name(), strings.TrimSpace(string(pid)))
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
	return func() { _ = f.Close() }, nil
}

// readFile reads a configuration file. It reports false when there is none.
func readFile(path string) ([]byte, bool, error) {
	const limit = servers.MaxFile
	// A pipe in the place of a file would wait for its writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:forbidigo,gosec // the user names it
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = f.Close() }()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, false, errors.Join(fmt.Errorf("%s is not a regular file", path), err)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1)) //nolint:forbidigo // bounded by the reader
	if err != nil {
		return nil, false, err
	}
	if len(data) > limit {
		return nil, false, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return data, true, nil
}
