package fastpath

import (
	"net/http"
	"sync/atomic"
	"time"
)

// date is the Date of answers, which changes every second.
type date struct {
	second int64
	text   string
}

var dates atomic.Pointer[date]

func appendDate(out []byte) []byte {
	now := time.Now()
	d := dates.Load()
	if d == nil || d.second != now.Unix() {
		d = &date{now.Unix(), now.UTC().Format(http.TimeFormat)}
		dates.Store(d)
	}
	return append(out, d.text...)
}
