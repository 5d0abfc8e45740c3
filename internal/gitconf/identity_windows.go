package gitconf

import "io/fs"

// identify has no more than size and time here, where no sandbox depends on it.
func identify(info fs.FileInfo) identity {
	return identity{size: info.Size(), changed: info.ModTime().UnixNano()}
}
