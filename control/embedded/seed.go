package embedded

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/yaya-ai/yaya/internal/atomicfile"
)

// role says how a server begins.
type role int

const (
	joining  role = iota
	founding      // the first one
)

// noSay is the size that a group of servers is said to have until its members have told the real one.
// It is so large that no number of servers elects one among them.
const noSay = 1 << 20

// Where a server keeps who votes for the server that assigns streams.
const (
	metaFolder = Folder + "/jetstream/" + server.DEFAULT_SYSTEM_ACCOUNT + "/_js_/_meta_"
	peersFile  = metaFolder + "/peers.idx"
)

// seed says who votes, to a server that starts for the first time. Left to itself, a server begins
// with a group of at least two, and of as many as it has routes: one alone would never lead, and two
// that join while the others are away would begin a log of their own. The file is what a server reads
// at each start, so its form stays the same between versions: the size of the group, how many of its
// members are known, and their ids, in little-endian order.
func seed(data *os.Root, node string, as role) error {
	if err := data.MkdirAll(metaFolder, 0o700); err != nil {
		return err
	}
	if _, err := data.Lstat(peersFile); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	size, known := uint32(noSay), []string(nil)
	if as == founding {
		size, known = 1, []string{peerID(node)}
	}
	raw := binary.LittleEndian.AppendUint32(nil, size)
	raw = binary.LittleEndian.AppendUint32(raw, uint32(len(known))) //nolint:gosec // at most one
	for _, id := range known {
		raw = append(raw, id...)
	}
	raw = binary.LittleEndian.AppendUint16(raw, 0) // no other domain is known
	dir, err := data.OpenRoot(metaFolder)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	_, err = atomicfile.Write(dir, path.Base(peersFile), raw)
	return err
}

// only reports whether a server is the only one with a say.
func only(data *os.Root) bool {
	raw, err := data.ReadFile(peersFile)
	return err == nil && len(raw) >= 4 && binary.LittleEndian.Uint32(raw) == 1
}

// peerID is the id that servers vote with: it follows from the name.
func peerID(node string) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	sum := sha256.Sum256([]byte(node))
	id := make([]byte, 8)
	for i := range id {
		id[i] = digits[int(sum[i])%len(digits)]
	}
	return string(id)
}
