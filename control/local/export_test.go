package local

// SealNow seals the log at once.
func (l *Log) SealNow() { l.sealOpen() }
