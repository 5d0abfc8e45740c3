package proc

import "sync"

// SealDescriptors keeps inherited descriptors in this process: every descriptor
// above 2 is closed in the programs that it starts, unless it is passed to them on
// purpose. main calls it before anything else; [Manager.Start] calls it once, too.
func SealDescriptors() error { return sealDescriptors() }

var sealed = sync.OnceValue(sealDescriptors)
