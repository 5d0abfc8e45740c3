package sandbox

import "io/fs"

// sameDevice is for sandboxes, which Windows does not have.
func sameDevice(fs.FileInfo, fs.FileInfo) bool { return false }
