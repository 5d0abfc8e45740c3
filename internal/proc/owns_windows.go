package proc

// GuardMain returns false: a job ends with this process, so no process is its guard.
func GuardMain() bool { return false }

// guarded is for guards.
func guarded(*Process) rune { return '+' }

// guardHandle is nil here.
type guardHandle struct{}

func startGuard() (*guardHandle, error) { return nil, nil } //nolint:nilnil // none is needed
func (*guardHandle) tell(string) error  { return nil }
func (*guardHandle) close()             {}
func sealDescriptors() error            { return nil } // no handle is inherited unless it is named

// Descends knows of nobody: Windows does not tell whose a connection is without a race.
func Descends(int) bool { return false }

// Boxed returns false: there is no sandbox on Windows.
func Boxed() bool { return false }

// InSandbox reports that nothing is in a sandbox.
func InSandbox(int) bool { return false }

// adopter is for orphans, which a job keeps.
type adopter struct{}

var orphanage adopter

func (*adopter) adopt(func(int)) bool { return false }
func (*adopter) release()             {}

func ticks() uint64 { return 0 }
