package lsp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/yaya-ai/yaya/internal/cut"
)

// Bounds of findings.
const (
	maxFiles    = 500
	maxFindings = 200  // of a file
	maxOthers   = 2000 // of all files that the server has no copy of
	maxText     = 500  // bytes of a message
	maxOpen     = 100  // files of earlier checks
	quiet       = time.Second
)

// File is one that is asked about.
type File struct {
	Path     string // within the folder, with slashes
	Language string // the protocol's id, such as "typescript"
	Text     string
}

// Severity is that of the protocol.
type Severity int

// The severities.
const (
	Problem Severity = 1 + iota
	Warning
	Information
	Hint
)

// Finding is one statement of a server about a place.
type Finding struct {
	Path         string   `json:"path"`
	Line, Column int      // from 1; columns count characters
	Severity     Severity // Problem if the server does not say
	Message      string   // its first line, and cut
	From         string   // the tool behind the server, and its code: "typescript 2304"
}

// diagnostic is the protocol's.
type diagnostic struct {
	Range struct {
		Start struct {
			Line      int `json:"line"`
			Character int `json:"character"`
		} `json:"start"`
	} `json:"range"`
	Severity Severity        `json:"severity"`
	Code     json.RawMessage `json:"code"`
	Source   string          `json:"source"`
	Message  string          `json:"message"`
}

// diagnostics are the first of a list, cut. A decoded list takes many times the memory of its text.
type diagnostics []diagnostic

// UnmarshalJSON implements [json.Unmarshaler]: it decodes one element at a time.
func (l *diagnostics) UnmarshalJSON(data []byte) error {
	*l = nil
	return elements(data, func(dec *json.Decoder) (more bool, err error) {
		var d diagnostic
		if err := dec.Decode(&d); err != nil {
			return false, err
		}
		d.Message, _, _ = strings.Cut(strings.TrimSpace(d.Message), "\n")
		d.Message, d.Source = short(d.Message, maxText), short(d.Source, 40)
		if len(d.Code) > 40 {
			d.Code = nil
		}
		*l = append(*l, d)
		return len(*l) < maxFindings, nil
	})
}

// elements calls next at each element of a list until it returns false. null is an empty list.
func elements(data []byte, next func(*json.Decoder) (bool, error)) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	begin, err := dec.Token()
	if err != nil || begin == nil {
		return err
	}
	if begin != json.Delim('[') {
		return errors.New("not a list")
	}
	for dec.More() {
		if more, err := next(dec); err != nil || !more {
			return err
		}
	}
	return nil
}

// short cuts a text, and copies it: a part of a string keeps all of it in memory.
func short(s string, most int) string { return strings.Clone(cut.Text(s, most)) }

// Check tells the server the texts of files, and returns the findings in them and in other files
// of the folder, the asked ones first. It waits until the server has spoken about all of them and
// then is silent for a second. whole is false when ctx ended that. Files of earlier checks, of which
// the server has a copy, are read again by read, which is not called for others, and returns false
// for a file that is gone.
func (s *Server) Check(ctx context.Context, files []File, read func(path string) (string, bool)) (out []Finding, whole bool, err error) {
	select {
	case s.checking <- struct{}{}:
		defer func() { <-s.checking }()
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
	asked := map[string]int{} // versions by URI
	for _, f := range files {
		asked[s.at(f.Path)] = 0
	}
	if err := s.refresh(asked, read); err != nil {
		return nil, false, err
	}
	for _, f := range files {
		at := s.at(f.Path)
		if asked[at], err = s.show(at, f); err != nil {
			return nil, false, err
		}
	}
	whole, err = s.settle(ctx, asked)
	if err != nil {
		return nil, false, err
	}
	return s.findings(files), whole, nil
}

// Changed tells that files of the folder were made, changed or removed by somebody else.
func (s *Server) Changed(made, changed, removed []string) error {
	var events []any
	for kind, paths := range [][]string{made, changed, removed} {
		for _, p := range paths {
			events = append(events, map[string]any{"uri": s.at(p), "type": kind + 1})
		}
	}
	if len(events) == 0 {
		return nil
	}
	return s.tell("workspace/didChangeWatchedFiles", map[string]any{"changes": events})
}

// at returns the URI of a file of the folder.
func (s *Server) at(p string) string { return uri(filepath.Join(s.root, filepath.FromSlash(p))) }

// refresh tells what has become of the files of earlier checks, and closes them all when they are
// many.
func (s *Server) refresh(asked map[string]int, read func(string) (string, bool)) error {
	s.mu.Lock()
	old := map[string]File{}
	for at, f := range s.open {
		if _, now := asked[at]; !now {
			old[at] = f
		}
	}
	s.mu.Unlock()
	for at, f := range old {
		text, there := "", false
		if len(old) <= maxOpen {
			text, there = read(f.Path)
		}
		if there && text == f.Text {
			continue
		}
		if there {
			f.Text = text
			if _, err := s.show(at, f); err != nil {
				return err
			}
			continue
		}
		s.mu.Lock()
		delete(s.open, at)
		delete(s.found, at)
		s.mu.Unlock()
		if err := s.tell("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": at}}); err != nil {
			return err
		}
	}
	return nil
}

// show tells the text of a file.
func (s *Server) show(at string, f File) (version int, err error) {
	s.mu.Lock()
	_, known := s.open[at]
	s.open[at] = f
	s.versions++ // of all files, so that a file that is opened again has a newer one
	version = s.versions
	delete(s.found, at) // an answer without a version is about this text
	s.mu.Unlock()
	if !known {
		err = s.tell("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": at, "languageId": f.Language, "version": version, "text": f.Text}})
	} else {
		err = s.tell("textDocument/didChange", map[string]any{"textDocument": map[string]any{"uri": at, "version": version}, "contentChanges": []any{map[string]any{"text": f.Text}}})
	}
	if err == nil {
		err = s.tell("textDocument/didSave", map[string]any{"textDocument": map[string]any{"uri": at}})
	}
	return version, err
}

// settle waits for the findings of files.
func (s *Server) settle(ctx context.Context, asked map[string]int) (whole bool, err error) {
	if s.pulls {
		for at := range asked {
			if err := s.pull(ctx, at); ctx.Err() != nil {
				return false, nil
			} else if err != nil {
				return false, err
			}
		}
		return true, nil
	}
	silence := time.NewTimer(quiet)
	defer silence.Stop()
	for {
		s.mu.Lock()
		change, spoken := s.change, len(s.busy) == 0
		for at, version := range asked {
			f := s.found[at]
			spoken = spoken && f != nil && (f.version == nil || *f.version >= version)
		}
		s.mu.Unlock()
		var over <-chan time.Time
		if spoken {
			silence.Reset(quiet)
			over = silence.C
		}
		select {
		case <-change:
		case <-over:
			return true, nil
		case <-s.done:
			return false, s.ended()
		case <-ctx.Done():
			return false, nil
		}
	}
}

// pull asks for the findings of a file.
func (s *Server) pull(ctx context.Context, at string) error {
	var got struct {
		Items diagnostics `json:"items"`
	}
	if err := s.ask(ctx, "textDocument/diagnostic", map[string]any{"textDocument": map[string]any{"uri": at}}, &got); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found[at] = &findings{nil, got.Items}
	return nil
}

// findings returns what is known, the files first.
func (s *Server) findings(files []File) (out []Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, f := range s.found {
		p, ok := s.within(at)
		if !ok {
			continue
		}
		var lines []string
		if f, open := s.open[at]; open {
			lines = strings.Split(f.Text, "\n")
		}
		for _, d := range f.list {
			line, column := max(0, d.Range.Start.Line), max(0, d.Range.Start.Character)
			if line < len(lines) {
				column = s.characters(lines[line], column)
			}
			out = append(out, Finding{Path: p, Line: line + 1, Column: column + 1, Severity: severity(d.Severity), Message: d.Message, From: d.from()})
		}
	}
	rank := func(f Finding) int {
		if i := slices.IndexFunc(files, func(x File) bool { return path.Clean(x.Path) == f.Path }); i >= 0 {
			return i
		}
		return len(files)
	}
	slices.SortFunc(out, func(a, b Finding) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		if d := strings.Compare(a.Path, b.Path); d != 0 {
			return d
		}
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return out
}

func severity(s Severity) Severity {
	if s < Problem || s > Hint {
		return Problem
	}
	return s
}

func (d diagnostic) from() string {
	code := ""
	if json.Unmarshal(d.Code, &code) != nil && len(d.Code) > 0 && d.Code[0] != '{' && string(d.Code) != "null" {
		code = string(d.Code)
	}
	return strings.TrimSpace(d.Source + " " + code)
}

// within returns the path of a URI in the folder.
func (s *Server) within(at string) (string, bool) {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "file" {
		return "", false
	}
	p := u.Path
	if filepath.Separator == '\\' {
		p = strings.TrimPrefix(p, "/")
	}
	rel, err := filepath.Rel(s.root, filepath.FromSlash(p))
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

// characters counts those before a column, which is in bytes or UTF-16 units.
func (s *Server) characters(line string, column int) int {
	n, units := 0, 0
	for _, r := range line {
		if units >= column {
			break
		}
		if s.utf8 {
			units += utf8.RuneLen(r)
		} else {
			units += utf16.RuneLen(r)
		}
		n++
	}
	return n
}
