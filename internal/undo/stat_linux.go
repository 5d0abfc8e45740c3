package undo

import "syscall"

// changed is when a file's content or attributes changed last.
func changed(st *syscall.Stat_t) int64 { return st.Ctim.Nano() }
