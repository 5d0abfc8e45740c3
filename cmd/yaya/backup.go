package main

import (
	"os"
	"path/filepath"
	"time"
)

// backupSuffix is between the name of a file and the time of its backup.
const backupSuffix = ".yaya-backup-"

// backUp keeps the content of a file beside it, under a name that no file has, with
// the permissions of the file.
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

// lastBackup is the content of the newest backup of a file; nil if there is none.
func lastBackup(path string) ([]byte, error) {
	dir, base := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	newest := ""
	for _, e := range entries {
		if name := e.Name(); len(name) > len(base+backupSuffix) && name[:len(base+backupSuffix)] == base+backupSuffix {
			newest = max(newest, name)
		}
	}
	if newest == "" {
		return nil, nil
	}
	data, _, err := readFile(filepath.Join(dir, newest))
	return data, err
}
