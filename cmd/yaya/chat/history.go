package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/hostfile"
)

// historyFile has the entries that were typed, oldest first, one JSON object a line.
const historyFile = "chat-history.ndjson"

// Limits of the history. Older entries are dropped, and a larger one is not kept.
const (
	maxEntries     = 1000
	maxEntry       = 8 << 10
	maxHistoryFile = 512 << 10
)

// history holds the entries that the user sent, in this and in other sessions.
type history struct {
	dir     string // the data directory; "" keeps nothing for later
	entries []string
	at      int    // of the shown entry; behind the last one it is the draft
	draft   string // the input before the user looked at older entries

	mu     sync.Mutex // one write at a time
	writes sync.WaitGroup
}

// entry is a line of the file.
type entry struct {
	Text string `json:"text"`
}

// load reads the entries of earlier sessions.
func (h *history) load() error {
	if h.dir == "" {
		return nil
	}
	root, err := os.OpenRoot(h.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing has been kept yet
	}
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	h.entries, err = readHistory(root)
	h.at = len(h.entries)
	return err
}

func readHistory(root *os.Root) (out []string, err error) {
	f, err := hostfile.OpenNoLink(root, historyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is not a regular file; remove it", historyFile), err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxHistoryFile)) //nolint:forbidigo // bounded
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(data) {
		var e entry
		if json.Unmarshal(line, &e) == nil && e.Text != "" { // a damaged line is one entry less
			out = append(out, e.Text)
		}
	}
	return out[max(0, len(out)-maxEntries):], nil
}

// add appends an entry, and writes it in the background. Failed writes go to failed.
func (h *history) add(text string, failed func(error)) {
	if text == "" || strings.HasPrefix(text, " ") || len(text) > maxEntry {
		return
	}
	if len(h.entries) == 0 || h.entries[len(h.entries)-1] != text {
		h.entries = append(h.entries, text)
		h.entries = h.entries[max(0, len(h.entries)-maxEntries):]
	}
	h.at = len(h.entries)
	if h.dir == "" {
		return
	}
	h.writes.Go(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if err := keep(h.dir, text); err != nil {
			failed(fmt.Errorf("the history of the chat is not kept: %w", err))
		}
	})
}

// keep adds an entry to the file. It reads the file again, which another chat may have changed.
func keep(dir, text string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	all, err := readHistory(root)
	if err != nil {
		return err
	}
	if len(all) > 0 && all[len(all)-1] == text {
		return nil
	}
	all = append(all, text)
	var lines [][]byte
	size := 0
	for _, text := range slices.Backward(all[max(0, len(all)-maxEntries):]) {
		line, err := json.Marshal(entry{text})
		if err != nil {
			return err
		}
		if size += len(line) + 1; size > maxHistoryFile {
			break
		}
		lines = append(lines, line)
	}
	slices.Reverse(lines)
	_, err = atomicfile.Write(root, historyFile, append(bytes.Join(lines, []byte("\n")), '\n'))
	return err
}

// older returns the entry before the shown one; now is the input.
func (h *history) older(now string) (text string, ok bool) {
	if h.at == 0 {
		return "", false
	}
	if h.at == len(h.entries) {
		h.draft = now
	}
	h.at--
	return h.entries[h.at], true
}

// newer returns the entry behind the shown one, or the draft.
func (h *history) newer() (text string, ok bool) {
	switch h.at {
	case len(h.entries):
		return "", false
	case len(h.entries) - 1:
		h.at++
		return h.draft, true
	}
	h.at++
	return h.entries[h.at], true
}

// with returns the entries that contain a text, newest first and each once.
func (h *history) with(text string) (out []choice) {
	seen := map[string]bool{}
	for _, e := range slices.Backward(h.entries) {
		if !seen[e] && strings.Contains(e, text) && len(out) < maxChoices {
			out = append(out, choice{text: e})
		}
		seen[e] = true
	}
	return out
}
