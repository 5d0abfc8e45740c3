package embedded

import _ "unsafe" // for go:linkname

// procStatFile is where the server's package samples the use of the processor: each second, from the
// moment that it is linked in, whether a server runs or not. A yaya that is alone is to do nothing
// when nobody asks it for anything. Without the file the samples end; no part of yaya reads them.
//
//go:linkname procStatFile github.com/nats-io/nats-server/v2/server/pse.procStatFile
var procStatFile string

var _ = stopSamples()

// stopSamples runs long before the next sample is due, which no detector of races can know.
//
//go:norace
func stopSamples() bool {
	procStatFile = ""
	return true
}
