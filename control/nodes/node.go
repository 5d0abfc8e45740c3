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
	Kernel string `json:"kernel,omitempty"`
	// Servers keep the log, unless the nodes do that themselves.
	Servers Servers `json:"nats,omitzero"`
	// Route is where the other nodes reach the server in this one, HOST:PORT; "" without one.
	Route string `json:"route,omitempty"`
	// Incarnation tells a cluster that was founded again from a copy from the one before; "" for one that
	// never was.
	Incarnation string `json:"incarnation,omitempty"`
	// Routes are those of the nodes that there were when this one joined. The log has the later ones.
	Routes []string `json:"routes,omitempty"`
}

// valid reports whether somebody keeps the log: either servers, or the nodes.
func (n Node) valid() bool {
	if !ValidName(n.Name) || (n.Servers.URL == "") == (n.Route == "") {
		return false
	}
	for _, r := range n.routes() {
		if _, _, err := SplitRoute(r); err != nil {
			return false
		}
	}
	return true
}

func (n Node) routes() []string {
	if n.Route == "" {
		return n.Routes
	}
	return append([]string{n.Route}, n.Routes...)
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
	if err := json.Unmarshal(raw, &n); err != nil || !n.valid() {
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
