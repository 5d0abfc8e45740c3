package gitread

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"
)

// config has the last value of each key: section.key, section.name.key.
type config map[string]string

// readConfig reads a repository's own configuration, without its includes.
func readConfig(root *os.Root) (config, error) {
	data, err := readFile(root, "config", maxSmall)
	if errors.Is(err, fs.ErrNotExist) {
		return config{}, nil
	}
	if err != nil {
		return nil, err
	}
	cfg := config{}
	for key, value := range Settings(data) {
		cfg[key] = value
	}
	return cfg, nil
}

// Settings returns the settings of a file of Git's configuration in their order:
// section.key, section.name.key, without what the file includes.
func Settings(data []byte) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		section := ""
		text := strings.ReplaceAll(strings.ReplaceAll(string(data), "\r\n", "\n"), "\\\n", "")
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if rest, ok := strings.CutPrefix(line, "["); ok {
				head, after, _ := strings.Cut(rest, "]")
				name, sub, has := strings.Cut(head, " ")
				section = strings.ToLower(strings.TrimSpace(name))
				if has {
					section += "." + strings.ReplaceAll(strings.ReplaceAll(strings.Trim(strings.TrimSpace(sub), `"`), `\"`, `"`), `\\`, `\`)
				}
				line = strings.TrimSpace(after)
			}
			if line == "" || line[0] == '#' || line[0] == ';' {
				continue
			}
			key, value, has := strings.Cut(line, "=")
			if !has {
				value = "true"
			}
			if !yield(section+"."+strings.ToLower(strings.TrimSpace(key)), configValue(value)) {
				return
			}
		}
	}
}

// configValue removes quotes, escapes and comments.
func configValue(s string) string {
	var b strings.Builder
	quoted := false
	s = strings.TrimSpace(s)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case !quoted && (c == '#' || c == ';'):
			return strings.TrimSpace(b.String())
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// is reports whether a setting is on.
func (c config) is(key string, otherwise bool) bool {
	switch strings.ToLower(c[key]) {
	case "true", "yes", "on", "1":
		return true
	case "false", "no", "off", "0":
		return false
	}
	return otherwise
}

// id names an object.
type id [20]byte

func (i id) String() string { return hex.EncodeToString(i[:]) }

func parseID(s string) (i id, ok bool) {
	if len(s) != 40 {
		return i, false
	}
	_, err := hex.Decode(i[:], []byte(s))
	return i, err == nil
}

// head is the target of HEAD.
type head struct {
	ref    string // "" when detached
	commit id
	born   bool // there is a commit
}

func (r *Repo) head() (head, error) {
	data, err := readFile(r.git, "HEAD", maxSmall)
	if err != nil {
		return head{}, err
	}
	line := strings.TrimSpace(string(data))
	if ref, ok := strings.CutPrefix(line, "ref:"); ok {
		h := head{ref: strings.TrimSpace(ref)}
		h.commit, h.born, err = r.resolve(h.ref)
		return h, err
	}
	commit, ok := parseID(line)
	if !ok {
		return head{}, damaged("HEAD names nothing")
	}
	return head{"", commit, true}, nil
}

// resolve finds the object that a reference names.
func (r *Repo) resolve(ref string) (id, bool, error) {
	for range 5 {
		if !fs.ValidPath(ref) || !strings.HasPrefix(ref, "refs/") {
			return id{}, false, damaged("the reference %.100q", ref)
		}
		data, err := readFile(r.common, ref, maxSmall)
		if err != nil {
			// It is packed, or a folder of other references has its name.
			return r.packed(ref)
		}
		line := strings.TrimSpace(string(data))
		next, ok := strings.CutPrefix(line, "ref:")
		if !ok {
			i, ok := parseID(line)
			if !ok {
				return id{}, false, damaged("the reference %.100q", ref)
			}
			return i, true, nil
		}
		ref = strings.TrimSpace(next)
	}
	return id{}, false, damaged("references go round in circles")
}

func (r *Repo) packed(ref string) (id, bool, error) {
	f, info, err := openFile(r.common, "packed-refs")
	if errors.Is(err, fs.ErrNotExist) {
		return id{}, false, nil
	}
	if err != nil {
		return id{}, false, err
	}
	defer func() { _ = f.Close() }()
	if info.Size() > maxPacked {
		return id{}, false, fmt.Errorf("%w: packed-refs has more than %d bytes", errTooLarge, maxPacked)
	}
	want := []byte(" " + ref)
	for lines := bufio.NewReaderSize(io.LimitReader(f, maxPacked), 64<<10); ; {
		line, err := lines.ReadSlice('\n')
		line = bytes.TrimRight(line, "\r\n")
		if len(line) > 40 && bytes.Equal(line[40:], want) {
			i, ok := parseID(string(line[:40]))
			if !ok {
				return id{}, false, damaged("packed-refs")
			}
			return i, true, nil
		}
		if errors.Is(err, io.EOF) {
			return id{}, false, nil
		}
		if err != nil {
			return id{}, false, errors.Join(damaged("packed-refs"), err)
		}
	}
}
