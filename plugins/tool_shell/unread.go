package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"fmt"
	"strings"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/masked"
)

// Bounds of the output of a command in the background.
const (
	maxUnread = 256 << 10 // that nobody has read yet
	maxRecent = 8 << 10   // that is searched for reasons when the command has failed
)

// unread is output that nobody has read yet: of much, the newest.
type unread struct {
	masked *masked.Stream // applied before the output is cut
	data   []byte
	lost   int64 // bytes that came before data
	recent []byte
}

func (u *unread) add(text string) {
	u.recent = newest(append(u.recent, text...), maxRecent)
	had := len(u.data) + len(text)
	u.data = newest(append(u.data, text...), maxUnread)
	u.lost += int64(had - len(u.data))
}

// newest returns the end of data. It moves bytes only when there are twice as many as wanted.
func newest(data []byte, most int) []byte {
	if len(data) <= 2*most {
		return data
	}
	return append(data[:0], data[len(data)-most:]...)
}

// take returns the output, and forgets it. A character of which the rest has not come yet stays,
// unless all says that nothing more comes.
func (u *unread) take(all bool) string {
	data, lost := u.data, u.lost
	if more := len(data) - maxUnread; more > 0 {
		data, lost = data[more:], lost+int64(more)
	}
	out := data
	if !all {
		out = cut.Whole(data)
	}
	text := strings.ToValidUTF8(string(out), "\uFFFD")
	if lost > 0 {
		text = fmt.Sprintf("[… %d bytes omitted …]\n", lost) + text
	}
	u.data, u.lost = append([]byte(nil), data[len(out):]...), 0
	return text
}
