package datadir

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/keyfile"
	"github.com/yaya-ai/yaya/internal/secrets"
	"github.com/yaya-ai/yaya/internal/unread"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/mcpbridge/trust"
	"github.com/yaya-ai/yaya/plugins/memory_sqlite"
)

// kind is a kind of file that yaya keeps.
type kind struct {
	pattern string // of [path.Match], below the data directory
	// check returns what is wrong with a file.
	check func(ctx context.Context, d *dir, name string) error
	// lost says what is gone with a file that is moved away.
	lost string
	// left says what to do about a file that is not moved away. Optional.
	left string
	// instead mends a file that lies under aside now; it returns what to say instead of
	// lost. Optional.
	instead func(ctx context.Context, d *dir, name, aside string) (string, error)
}

// RemedyKeys is the remedy for a damaged key of the control log.
const RemedyKeys = "restore control/ and keys/ from a backup; without one, begin again: yaya repair --control"

const (
	memoryFile    = "memory.db"
	keyFiles      = "keys/*.key"
	tokenKeyFiles = "keys/token-*.key" //nolint:gosec // a pattern of names
	sessionFiles  = "sessions/*/session.json"
)

// kinds are all that can be damaged, but tapes, and the control log with its keys.
var kinds = []kind{
	{pattern: "config.json", check: settings, lost: "all settings that were changed on the page or with yaya config set, rules of approval among them; config.toml and the environment still count"},
	{pattern: "secrets.sealed", check: sealed, lost: "all secrets; set them again (yaya secret set NAME), and sign in to the servers again (yaya mcp login SERVER)"},
	{pattern: "permits.json", check: document('['), lost: "what servers of projects were allowed beyond their entries: allow it again (yaya mcp allow NAME)"},
	{pattern: "tokens-used.json", check: document('{'), lost: "when tokens were used last"},
	{pattern: "chat-history.ndjson", check: lines, lost: "what was typed in yaya chat"},
	{pattern: "eras.json", check: document('{'), lost: "which version of MCP each server speaks, which yaya finds out again"},
	{pattern: "catalog/*.json", check: document('{'), lost: "what the catalogue knew of servers, which yaya asks for again"},
	{pattern: "restored.json", check: document('{'), lost: "what the audit was to say about the backup that was restored"},
	{pattern: "control-restarted.json", check: document('{'), lost: "what the audit was to say about the repair of its log"},
	{pattern: memoryFile, check: memory, lost: "all memories", instead: salvage},
	{pattern: "folders/trusted.json", check: folders, lost: "which folders are trusted: no folder is, until you trust it again (yaya trust DIR)"},
	{pattern: "folders/unreviewed.json", check: document('{'), lost: "which changes of agents nobody has seen: look at them (git diff) before you let an agent run checks"},
	{pattern: "trust/*.json", check: approvals, lost: "what was approved of a server: all of its tools wait (yaya mcp approve NAME)", instead: restart},
	{pattern: tokenKeyFiles, check: key, lost: "the key that signs tokens: yaya makes another one; devices and tokens stay valid"},
	{pattern: keyFiles, check: key, left: RemedyKeys},
	{pattern: "keys/remotes/*.json", check: document('{'), lost: "the credentials at another yaya: connect to it again (yaya connect URL)"},
	{pattern: "keys/self-signed.pem", check: pair, lost: "the key of --tls-self-signed: yaya makes another one, and devices that connect by its fingerprint need a new code"},
	{pattern: "certs/*/*.pem", check: pair, lost: "a certificate: yaya asks for another one"},
	{pattern: "certs/*/*.key", check: key, lost: "the account at a certificate authority: yaya makes another one"},
	{pattern: "certs/*/*.json", check: document('{'), lost: "when to ask for a certificate again: yaya asks at once"},
	{pattern: "oauth/*.json", check: document('{'), lost: "an authorization at a server: sign in again (yaya mcp login SERVER)"},
	{pattern: sessionFiles, check: document('{'), lost: "a session's title, settings and counted usage; its conversation is on its tape"},
	{pattern: "sessions/*/spent.json", check: document('{'), lost: "what a session has cost, which budget.session_cents limits: it begins at nothing"},
	{pattern: "spent.json", check: document('{'), lost: "what all sessions have cost today, which budget.day_cents limits: the day begins at nothing"},
	{pattern: "sessions/.archive/*/session.json", check: document('{'), lost: "the title and settings of an archived session; its conversation is on its tape"},
	{pattern: "sessions/*/events.ndjson", check: lines, lost: "nothing: the events are those of the tape, and begin again with it"},
	{pattern: "traffic/*.ndjson", check: lines, lost: "recorded calls"},
	{pattern: "traffic/days/*.json", check: document('{'), lost: "the sums of a day's calls"},
}

// kindOf returns the kind of a file, nil for one of no kind.
func kindOf(name string) *kind {
	for i := range kinds {
		if ok, err := path.Match(kinds[i].pattern, name); ok && err == nil {
			return &kinds[i]
		}
	}
	return nil
}

// maxDocument bounds a file that is read whole; maxLine a line.
const (
	maxDocument = 64 << 20
	maxLine     = 16 << 20
)

// notRegular is the error about a link, a folder or a pipe in the place of a file.
func notRegular() error {
	return unread.Error(errors.New("it is not a regular file; put the file in its place"))
}

// open opens a regular file, and neither follows a link nor waits for a pipe.
func (d *dir) open(name string) (*os.File, error) {
	f, err := hostfile.OpenNoLink(d.root, name)
	if errors.Is(err, syscall.ELOOP) {
		return nil, notRegular()
	}
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(notRegular(), err, f.Close())
	}
	return f, nil
}

func (d *dir) read(name string) ([]byte, error) {
	f, err := d.open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxDocument+1)) //nolint:forbidigo // bounded
	if err == nil && len(data) > maxDocument {
		err = fmt.Errorf("it has more than %d bytes", maxDocument)
	}
	return data, errors.Join(err, f.Close())
}

// document checks a file that is one JSON value, which begins with first.
func document(first byte) func(context.Context, *dir, string) error {
	return func(_ context.Context, d *dir, name string) error {
		data, err := d.read(name)
		if err != nil {
			return err
		}
		return checkDocument(data, first)
	}
}

var errEmpty = errors.New("it is empty")

var errForeign = errors.New("it does not begin as yaya writes it")

func checkDocument(data []byte, first byte) error {
	data = bytes.TrimSpace(data)
	switch {
	case len(data) == 0:
		return errEmpty
	case data[0] != first:
		return errForeign
	}
	return json.Unmarshal(data, new(json.RawMessage))
}

// lines checks a file of JSON lines. The last one may be unfinished: the next start cuts
// it off.
func lines(_ context.Context, d *dir, name string) (err error) {
	f, err := d.open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	in := bufio.NewScanner(f)
	in.Buffer(make([]byte, 0, 64<<10), maxLine)
	var before []byte
	n := 0
	for in.Scan() {
		if n > 0 {
			if err := checkDocument(before, '{'); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		}
		before = append(before[:0], in.Bytes()...)
		n++
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("line %d: %w", n+1, err)
	}
	var last error // about the last line
	switch {
	case n > 0 && whole(f):
		last = checkDocument(before, '{')
	case n > 0 && before[0] != '{':
		last = errForeign
	}
	if last != nil {
		return fmt.Errorf("line %d: %w", n, last)
	}
	return nil
}

// whole reports whether a file ends with the end of a line.
func whole(f *os.File) bool {
	st, err := f.Stat()
	last := make([]byte, 1)
	if err == nil {
		_, err = f.ReadAt(last, st.Size()-1)
	}
	return err == nil && last[0] == '\n'
}

func settings(_ context.Context, d *dir, _ string) error { return config.Check(d.root) }

func folders(_ context.Context, d *dir, _ string) error {
	_, err := folder.NewStore(d.root, nil, nil).List()
	return err
}

func sealed(ctx context.Context, d *dir, name string) error {
	if err := document('{')(ctx, d, name); err != nil || d.o.Secrets == nil {
		return err
	}
	err := d.o.Secrets(ctx)
	if err != nil && !errors.Is(err, secrets.ErrDamaged) {
		return unread.Error(err) // the key is missing, or another one
	}
	return err
}

func memory(ctx context.Context, d *dir, name string) error {
	// SQLite takes an empty file for a new database.
	if st, err := d.root.Stat(name); err == nil && st.Size() == 0 {
		if log, err := d.root.Stat(name + "-wal"); err != nil || log.Size() == 0 {
			return errEmpty
		}
	}
	return memory_sqlite.Check(ctx, d.root.Name()+"/"+name)
}

func approvals(ctx context.Context, d *dir, name string) error {
	if d.pins == nil {
		broken, err := trust.NewStore(d.root).Damaged()
		if err != nil { // of any of them
			return document('{')(ctx, d, name)
		}
		d.pins = broken
	}
	return d.pins[name]
}

// restart puts a record in the place of damaged approvals.
func restart(_ context.Context, d *dir, name, _ string) (string, error) {
	return "", trust.NewStore(d.root).Restart(name, d.now)
}

func key(_ context.Context, d *dir, name string) error {
	_, err := keyfile.Read(d.root, name)
	return err
}

// CheckKeys returns an error if a key of the control log cannot be read. Keys that sign
// tokens do not count: yaya makes another one.
func CheckKeys(root *os.Root) error {
	names, err := fs.Glob(root.FS(), keyFiles)
	for _, name := range names {
		if ok, _ := path.Match(tokenKeyFiles, name); ok {
			continue
		}
		if _, kerr := keyfile.Read(root, name); kerr != nil {
			err = errors.Join(err, kerr)
		}
	}
	return err
}

func pair(_ context.Context, d *dir, name string) error {
	data, err := d.read(name)
	if err == nil {
		_, err = tls.X509KeyPair(data, data)
	}
	return err
}

// salvage makes a database of the memories that can be read in the damaged one.
func salvage(ctx context.Context, d *dir, name, aside string) (string, error) {
	for _, end := range []string{"-wal", "-shm"} { // they belong to the database
		if err := d.move(name+end, aside+end); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	kept, lost, err := memory_sqlite.Salvage(ctx, d.root.Name()+"/"+aside, d.root.Name()+"/"+name)
	if err != nil {
		return "", err
	}
	said := fmt.Sprintf("%d memories are left", kept)
	if lost > 0 {
		return said + fmt.Sprintf(", and %d or more are lost", lost), nil
	}
	return said + "; nobody can tell how many are lost", nil
}
