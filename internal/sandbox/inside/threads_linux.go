package inside

import (
	"os"
	"runtime"
	"sync"
)

// spareThreads is more than the keeper ever has at work at once: its watch on the owner,
// on children, on signals and on calls of the program, and what the Go runtime adds.
const spareThreads = 12

// makeThreads has the runtime make all threads that the keeper will need, and the
// descriptors of its poller. A program can fill the table of processes of its user, or
// of files, and a runtime that wants one more then ends its process. Threads that have
// nothing to do stay, and are taken before others are made.
func makeThreads() {
	var up, ended sync.WaitGroup
	leave := make(chan struct{})
	up.Add(spareThreads)
	for range spareThreads {
		ended.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			up.Done()
			<-leave
		})
	}
	up.Wait()
	close(leave)
	ended.Wait()
	if f, err := os.Open("/proc/self/status"); err == nil { //nolint:forbidigo // a kernel file; opening it makes the poller
		_ = f.Close()
	}
}
