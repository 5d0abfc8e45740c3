package proc

import (
	"strconv"
	"strings"
	"time"
)

// maxWorkers bounds the processes that are looked at for [Process.Worked].
const maxWorkers = 64

// Worked returns the processor time that the process and its descendants have had, with
// that of those that have ended and were waited for; 0 when it is unknown, or the
// process has ended. It may shrink when descendants lose their parent.
func (p *Process) Worked() time.Duration {
	select {
	case <-p.done:
		return 0 // its id may be another's
	default:
	}
	var total uint64
	next := []int{p.PID()}
	for seen := 0; len(next) > 0 && seen < maxWorkers; seen++ {
		pid := next[0]
		next = next[1:]
		d, err := openProc(pid)
		if err != nil {
			continue // it has ended
		}
		if ticks, err := d.worked(); err == nil {
			total += ticks
			next = append(next, d.children()...)
		}
		d.close()
	}
	return time.Duration(total) * (time.Second / ticksPerSecond) //nolint:gosec // centuries
}

// ticksPerSecond is USER_HZ: 100 on every platform that yaya is built for.
const ticksPerSecond = 100

// worked returns the processor time in ticks: of user and system, its own and that of
// children that it has waited for (proc_pid_stat(5), fields 14 to 17).
func (d procDir) worked() (ticks uint64, err error) {
	fields, err := d.statFields()
	if err != nil {
		return 0, err
	}
	for _, f := range fields[11:15] {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return ticks, nil
}

// children returns the processes that any thread has started and that still have it as
// their parent: none where Linux does not list them (CONFIG_PROC_CHILDREN).
func (d procDir) children() (pids []int) {
	threads, err := readDirNames("/proc/" + strconv.Itoa(d.pid) + "/task")
	if err != nil {
		return nil
	}
	for _, t := range threads[:min(len(threads), maxWorkers)] {
		list, err := d.read("task/"+t+"/children", 4096)
		if err != nil {
			continue // the thread has ended
		}
		pids = append(pids, numbers(strings.Fields(string(list)))...)
	}
	return pids
}
