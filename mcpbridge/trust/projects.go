package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

const projectsFile = "projects.json"

// projects maps a server of a project's file to the hash of the entry that was
// approved.
type projects map[string]string

// Entry is a server that a project's file configures.
type Entry struct {
	File   string // absolute path
	Server string
	Config json.RawMessage // everything that defines it
}

func (e Entry) key() string { return e.File + "\x00" + e.Server }

func (e Entry) hash() (string, error) {
	c, err := jsonrpc.Canonical(e.Config)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(c)
	return hex.EncodeToString(sum[:]), nil
}

// Approved reports whether exactly this entry was approved.
func (s *Store) Approved(e Entry) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.projects()
	if err != nil {
		return false, err
	}
	h, err := e.hash()
	return err == nil && p[e.key()] == h, err
}

// ApproveProject agrees to an entry.
func (s *Store) ApproveProject(e Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.projects()
	if err != nil {
		return err
	}
	h, err := e.hash()
	if err != nil {
		return err
	}
	p[e.key()] = h
	return s.save(projectsFile, p)
}

func (s *Store) projects() (projects, error) {
	p := projects{}
	data, found, err := s.read(projectsFile)
	if err == nil && found {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		return nil, fmt.Errorf("what is trusted cannot be read: %s/%s/%s: %w", s.root.Name(), folder, projectsFile, err)
	}
	return p, nil
}
