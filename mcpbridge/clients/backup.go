package clients

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// backupSuffix separates the name of a file from the time of its backup.
const backupSuffix = ".yaya-backup-"

// backUp writes a copy of a file next to it, under an unused name and with the same
// permissions.
func backUp(path string, data []byte) (string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	base := path + backupSuffix + time.Now().UTC().Format("20060102T150405.000000000Z")
	f, err := os.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, st.Mode().Perm()) //nolint:forbidigo,gosec // beside the file that the user names
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if serr := f.Sync(); err == nil {
		err = serr
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return base, err
}

// backups returns the backups of a file, oldest first.
func backups(path string) ([]string, error) {
	dir, base := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var out []string
	for _, e := range entries { // sorting by name sorts by time
		if at, ok := strings.CutPrefix(e.Name(), base+backupSuffix); ok && at != "" {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out, nil
}
