package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// tree is a child with everything that it has started: a job object, which no process can
// leave. The system ends them all when the last handle of the job is closed, and so when this
// process dies; that is why Windows needs no guard.
type tree struct {
	mu  sync.Mutex
	job windows.Handle // 0 before the start, and after the end
}

// start starts the child suspended, and lets it run once it is in the job: nothing that it
// starts is outside.
func (t *tree) start(cmd *exec.Cmd) error {
	job, err := newJob()
	if err != nil {
		return fmt.Errorf("job: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return errors.Join(err, windows.CloseHandle(job))
	}
	werr := cmd.Process.WithHandle(func(h uintptr) { err = windows.AssignProcessToJobObject(job, windows.Handle(h)) })
	if err = errors.Join(werr, err); err == nil {
		err = resume(uint32(cmd.Process.Pid)) //nolint:gosec // an id fits
	}
	if err != nil {
		err = errors.Join(fmt.Errorf("job: %w", err), cmd.Process.Kill(), windows.CloseHandle(job))
		_ = cmd.Wait() // it was killed
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.job = job
	return nil
}

// newJob makes a job whose processes end with its last handle.
func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE}}
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		return 0, errors.Join(err, windows.CloseHandle(job))
	}
	return job, nil
}

// resume lets the threads of a suspended process run. A process has one when it is started.
func resume(pid uint32) (err error) {
	all, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, windows.CloseHandle(all)) }()
	at := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	resumed := false
	for err = windows.Thread32First(all, &at); err == nil; err = windows.Thread32Next(all, &at) {
		if at.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, at.ThreadID)
		if err != nil {
			return err
		}
		_, err = windows.ResumeThread(thread)
		if err = errors.Join(err, windows.CloseHandle(thread)); err != nil {
			return err
		}
		resumed = true
	}
	if !errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		return err
	}
	if !resumed {
		return errors.New("the process has no thread")
	}
	return nil
}

// sysProcAttr starts a child suspended, for [tree.start]; in a group of its own, so that
// Ctrl-C in the terminal is for yaya alone; and without a window where yaya has none.
func sysProcAttr(spec Spec) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{HideWindow: true, CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP}
	if spec.Line != "" {
		attr.CmdLine = syscall.EscapeArg(spec.Path) + " " + spec.Line
	}
	return attr
}

// ask sends Ctrl-Break to the child's group. Without a console nobody gets it, and the child
// is killed in the end.
func (*tree) ask(pid int) {
	_ = windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(pid)) //nolint:gosec // an id fits
}

// kill ends everything in the job.
func (t *tree) kill(int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.job != 0 {
		_ = windows.TerminateJobObject(t.job, killedStatus)
	}
}

// end closes the job, which ends what is in it.
func (t *tree) end() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	job := t.job
	t.job = 0
	return windows.CloseHandle(job)
}

// killedStatus is the exit code of processes that were killed, as of a console program that
// Ctrl-C has ended.
const killedStatus = 0xC000013A

// accounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.
type accounting struct {
	user, kernel, periodUser, periodKernel int64 // in units of 100 ns
	faults, processes, active, ended       uint32
}

func (t *tree) account() (a accounting, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.job == 0 {
		return a, os.ErrProcessDone // without a handle the system would tell of this process's own job
	}
	err = windows.QueryInformationJobObject(t.job, windows.JobObjectBasicAccountingInformation, uintptr(unsafe.Pointer(&a)), uint32(unsafe.Sizeof(a)), nil)
	return a, err
}

// endTree waits until the killed processes of the job have ended, closes it, and reports
// whether that succeeded.
func (p *Process) endTree() bool {
	clean := false
	for range 400 {
		if a, err := p.tree.account(); err != nil || a.active == 0 {
			clean = err == nil
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	return p.tree.end() == nil && clean
}

// Worked returns the processor time that the process and its descendants have had; 0 when it
// is unknown, or the process has ended.
func (p *Process) Worked() time.Duration {
	select {
	case <-p.done:
		return 0
	default:
	}
	a, err := p.tree.account()
	if err != nil {
		return 0
	}
	return time.Duration(a.user+a.kernel) * 100
}

// exitError reports how a child ended. Windows has no signals; a killed one has the code
// that killed it.
func exitError(cmd *exec.Cmd, err error, _ bool) error {
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return err
	}
	if code := uint32(cmd.ProcessState.ExitCode()); code >= 0x80000000 { //nolint:gosec // Windows has it as such a number
		return fmt.Errorf("exited with status %#x", code)
	}
	return fmt.Errorf("exited with status %d", cmd.ProcessState.ExitCode())
}

// Gone reports whether no process has an id.
func Gone(pid int) bool {
	h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid)) //nolint:gosec // an id fits
	if err != nil {
		return errors.Is(err, windows.ERROR_INVALID_PARAMETER)
	}
	defer func() { _ = windows.CloseHandle(h) }()
	at, err := windows.WaitForSingleObject(h, 0)
	return err == nil && at == windows.WAIT_OBJECT_0
}

// StartForUser starts a program that belongs to its user from then on, such as a browser: it
// does not end with this process.
func StartForUser(argv ...string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	self, err := os.StartProcess(path, argv, &os.ProcAttr{Env: os.Environ(), Sys: &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS}})
	if err != nil {
		return err
	}
	return self.Release()
}
