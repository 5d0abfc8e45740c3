package sessions

import "time"

// SetKeepAlive shortens the time of silence, until restore is called.
func SetKeepAlive(d time.Duration) (restore func()) {
	was := keepAlive
	keepAlive = d
	return func() { keepAlive = was }
}
