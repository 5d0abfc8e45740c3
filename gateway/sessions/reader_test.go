package sessions

import (
	"testing"

	"github.com/yaya-ai/yaya/auth"
)

// R12: a reader's queue holds 256 frames and 1 MiB; one more ends it, and what was
// queued is dropped: the client comes back with the last id that it has seen.
func TestReaderIsBounded(t *testing.T) {
	for name, tt := range map[string]struct{ frame, fit int }{"frames": {10, maxQueued}, "bytes": {64 << 10, 16}} {
		r := newReader(auth.LocalOwner)
		for range tt.fit {
			r.push(make([]byte, tt.frame))
		}
		if frames, over := r.take(nil); len(frames) != tt.fit || over {
			t.Errorf("%s: %d are there, over is %v", name, len(frames), over)
		}
		for range tt.fit + 1 {
			r.push(make([]byte, tt.frame))
		}
		if frames, over := r.take(nil); len(frames) != 0 || !over {
			t.Errorf("%s, one more: %d are there, over is %v", name, len(frames), over)
		}
		r.push([]byte("x"))
		if frames, over := r.take(nil); len(frames) != 0 || !over {
			t.Errorf("%s, afterwards: %d are there, over is %v", name, len(frames), over)
		}
	}
}
