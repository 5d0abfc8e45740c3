package nodes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/keyfile"
)

// File is the name of the file, in the folder of keys, that makes a yaya a node of a cluster.
const File = "cluster.json"

// Node makes a yaya a node of a cluster.
type Node struct {
	Name string `json:"name"`
	// Kernel is the id of the kernel of the node that founded the cluster, which had it
	// before; others have one that follows from their name.
	Kernel  string  `json:"kernel,omitempty"`
	Servers Servers `json:"nats"`
}

// Servers are the NATS servers that keep the log, and how to get in.
type Servers struct {
	URL         string `json:"url"`                   // comma-separated
	Credentials string `json:"credentials,omitempty"` // content of a .creds file
	CA          string `json:"ca,omitempty"`          // PEM, of an authority that the system does not know
}

// Read reads the file; nil if this yaya is alone.
func Read(keys *os.Root) (*Node, error) {
	raw, err := keyfile.ReadFile(keys, File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // alone
	}
	if err != nil {
		return nil, err
	}
	var n Node
	if err := json.Unmarshal(raw, &n); err != nil || !ValidName(n.Name) || n.Servers.URL == "" {
		return nil, fmt.Errorf("%s/%s is damaged: restore it from a backup, or have this node join again (yaya cluster join)", keys.Name(), File)
	}
	return &n, nil
}

// Write makes a yaya a node, durably.
func (n Node) Write(keys *os.Root) error {
	raw, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return err
	}
	_, err = atomicfile.Write(keys, File, append(raw, '\n'))
	return err
}
