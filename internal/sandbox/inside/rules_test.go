package inside

import "testing"

// The deepest rule decides, and of several for one path the last.
func TestEffective(t *testing.T) {
	sorted := Sort([]Rule{
		{Path: "/home/u/ws/.git/config", Access: Read}, {Path: "/home/u/ws", Access: Write}, {Path: "/home/u/.ssh", Access: Hide},
		{Path: "/home/u/.ssh/known_hosts", Access: Read}, {Path: "/tmp/", Access: Private}, {Path: "/data", Access: Hide}, {Path: "/data", Access: Read},
	})
	for path, want := range map[string]Access{
		"/": Read, "/home/u": Read, "/home/u/ws": Write, "/home/u/ws/a/b": Write, "/home/u/wsx": Read, "/home/u/ws/.git": Write, "/home/u/ws/.git/config": Read,
		"/home/u/.ssh": Hide, "/home/u/.ssh/id": Hide, "/home/u/.ssh/known_hosts": Read, "/tmp": Private, "/tmp/x": Private, "/data/x": Read,
	} {
		if got := Effective(sorted, path, Read); got != want {
			t.Errorf("Effective(%s) = %s, want %s", path, got, want)
		}
	}
	for i := 1; i < len(sorted); i++ {
		if depth(sorted[i-1].Path) > depth(sorted[i].Path) {
			t.Errorf("%s comes before %s", sorted[i-1].Path, sorted[i].Path)
		}
	}
}
