package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/yaya-ai/yaya/gateway/client"
	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/hostfile"
)

// Remotes is the folder of credentials at other servers.
const Remotes = "keys/remotes"

// RemoteFile is the name of the file of a remote gateway's credentials in the data
// directory.
func RemoteFile(url string) string {
	sum := sha256.Sum256([]byte(strings.TrimSuffix(url, "/")))
	return Remotes + "/" + hex.EncodeToString(sum[:16]) + ".json"
}

const maxRemote = 64 << 10

// LoadRemote reads the credentials for a remote gateway.
func LoadRemote(data *os.Root, name string) (client.Credentials, error) {
	var c client.Credentials
	f, err := data.Open(name)
	if err != nil {
		return c, err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return c, err
	}
	if !st.Mode().IsRegular() {
		return c, fmt.Errorf("%s is not a regular file", name)
	}
	how, fix, err := hostfile.Exposed(f)
	if err != nil {
		return c, err
	}
	if how != "" {
		return c, fmt.Errorf("%s has %s, and others can get at the key in it: %s", name, how, fix)
	}
	if err := json.NewDecoder(io.LimitReader(f, maxRemote)).Decode(&c); err != nil {
		return c, fmt.Errorf("%s is damaged: %w", name, err)
	}
	if len(c.Key) != 64 {
		return c, fmt.Errorf("%s is damaged: it has no key", name)
	}
	return c, nil
}

// SaveRemote keeps the credentials for a remote gateway.
func SaveRemote(data *os.Root, c client.Credentials) error {
	if err := data.MkdirAll(Remotes, 0o700); err != nil {
		return err
	}
	dir, err := data.OpenRoot(Remotes)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(c)
	if err == nil {
		_, err = atomicfile.Write(dir, strings.TrimPrefix(RemoteFile(c.URL), Remotes+"/"), raw)
	}
	return errors.Join(err, dir.Close())
}
