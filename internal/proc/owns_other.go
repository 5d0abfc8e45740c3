//go:build unix && !linux

package proc

// Owns needs /proc.
func (*Manager) Owns(int) bool { return false }

// HoldsSocket needs /proc.
func (*Manager) HoldsSocket(uint32) bool { return false }
