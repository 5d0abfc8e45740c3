package intake

import (
	"context"
	"errors"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/worded"
)

// ErrCrowded is wrapped by the error of a caller that has waited for room in vain.
var ErrCrowded = errors.New("large messages in flight leave no room")

const (
	// Small is the size up to which a message is not counted in a [Queue]: small
	// messages never wait for large ones. Their number is bounded elsewhere.
	Small = 1 << 20

	// minQueue keeps a message of the usual limit possible on a small machine.
	minQueue = 64 << 20

	maxUnasked = 64 << 20
	maxFiles   = 1 << 30
)

// Queue is a budget for large messages in transit. It refuses nobody: if the budget
// is used up, a caller waits until others release theirs. One party gets at most its
// part, or a single message that is larger than that. Its methods are safe for
// concurrent use.
//
// Take room only for a complete message of known size: room held while a peer sends
// would be held for as long as the peer likes.
type Queue struct {
	total, each int64

	mu      sync.Mutex
	held    int64
	party   map[string]int64
	waiting []*turn // the longest first
}

// turn is a waiting caller.
type turn struct {
	party string
	n     int64
	share *Share // set when it is granted
	ready chan struct{}
}

// NewQueue returns a queue with a budget in bytes, of which one party gets a
// quarter.
func NewQueue(total int64) *Queue { return newQueue(total, total/4) }

func newQueue(total, each int64) *Queue {
	return &Queue{total: total, each: each, party: map[string]int64{}}
}

func newProcessQueue() *Queue {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		limit = 4 * maxBudget
	}
	return NewQueue(max(min(limit/4, maxBudget), minQueue))
}

// Requests and Answers are the budgets of the process for large messages of clients
// and of servers: a quarter of its memory limit each, and at most 256 MiB. They are
// separate, because a call holds its request while its answer waits for room.
var (
	Requests = sync.OnceValue(newProcessQueue)
	Answers  = sync.OnceValue(newProcessQueue)
)

// Unasked is the budget for large requests and notifications of servers. It is
// separate, because a request is held until a person has answered it.
var Unasked = sync.OnceValue(func() *Queue { return NewQueue(maxUnasked) })

// Parked is the budget for large requests whose clients have a question to answer: they
// count here meanwhile, because the answer may be another request of the same size.
var Parked = sync.OnceValue(func() *Queue { return NewQueue(maxUnasked) })

// Arriving and Kept are the budgets for files: of large messages until they are
// complete and there is memory for them, and of results until somebody asks for them.
// One party gets a half. They are separate, because a result may never be asked for.
var (
	Arriving = sync.OnceValue(func() *Queue { return newQueue(maxFiles, maxFiles/2) })
	Kept     = sync.OnceValue(func() *Queue { return newQueue(maxFiles, maxFiles/2) })
)

// Share is a part of a [Queue]. A nil share holds nothing. Its methods may be called
// more than once and from any goroutine.
type Share struct {
	q     *Queue
	party string // guarded by q.mu
	n     int64  // guarded by q.mu
}

// fits reports whether a party may have n bytes more; mu is held. A party that holds
// nothing may have a single message that is larger than its part.
func (q *Queue) fits(party string, n int64) bool {
	if q.held+n > q.total && q.held > 0 {
		return false
	}
	return q.inPart(party, n)
}

// grant takes n bytes; mu is held.
func (q *Queue) grant(party string, n int64) *Share {
	q.held += n
	q.party[party] += n
	return &Share{q, party, n}
}

// TryTake takes n bytes for a party if they are available at once; else it returns
// nil.
func (q *Queue) TryTake(party string, n int64) *Share {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.before(party) || !q.fits(party, n) {
		return nil
	}
	return q.grant(party, n)
}

// before reports whether a newcomer of that party would overtake a waiting caller: of
// the same party, or one that waits only for the whole budget; mu is held.
func (q *Queue) before(party string) bool {
	first := map[string]bool{}
	for _, t := range q.waiting {
		if t.party == party || (!first[t.party] && q.inPart(t.party, t.n)) {
			return true
		}
		first[t.party] = true
	}
	return false
}

// inPart reports whether n bytes more leave a party within its part; mu is held.
func (q *Queue) inPart(party string, n int64) bool {
	has := q.party[party]
	return has == 0 || has+n <= q.each
}

// Take takes n bytes for a party, waiting for them if need be. Its error is that of
// the context, and says what it has waited for.
func (q *Queue) Take(ctx context.Context, party string, n int64) (*Share, error) {
	if s := q.TryTake(party, n); s != nil {
		return s, nil
	}
	t := &turn{party: party, n: n, ready: make(chan struct{})}
	q.mu.Lock()
	q.waiting = append(q.waiting, t)
	q.serve()
	q.mu.Unlock()
	select {
	case <-t.ready:
		return t.share, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.share != nil { // it came at the same moment
		q.give(t.share, t.share.n)
	} else {
		for i, o := range q.waiting {
			if o == t {
				q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
				break
			}
		}
	}
	q.serve()
	return nil, worded.Error(errors.Join(ErrCrowded, context.Cause(ctx)), "%v (%d MiB for all, %d MiB for one caller)", ErrCrowded, q.total>>20, q.each>>20)
}

// TakeSoon is like [Queue.Take], but waits no longer than d.
func (q *Queue) TakeSoon(ctx context.Context, party string, n int64, d time.Duration) (*Share, error) {
	if s := q.TryTake(party, n); s != nil {
		return s, nil
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return q.Take(ctx, party, n)
}

// serve grants available room to waiting callers, the longest waiting first. Nobody
// overtakes a caller of the same party, nor one that waits only for the whole budget;
// mu is held.
func (q *Queue) serve() {
	stopped := map[string]bool{}
	for i := 0; i < len(q.waiting); {
		t := q.waiting[i]
		switch {
		case stopped[t.party]:
			i++
		case q.fits(t.party, t.n):
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			t.share = q.grant(t.party, t.n)
			close(t.ready)
		case q.inPart(t.party, t.n):
			return // the whole is used up
		default:
			stopped[t.party] = true
			i++
		}
	}
}

// give returns n bytes of a share; mu is held.
func (q *Queue) give(s *Share, n int64) {
	s.n -= n
	q.held -= n
	if q.party[s.party] -= n; q.party[s.party] == 0 {
		delete(q.party, s.party)
	}
}

// Shrink releases all but n bytes.
func (s *Share) Shrink(n int64) {
	if s == nil {
		return
	}
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	if s.n > n {
		s.q.give(s, s.n-n)
		s.q.serve()
	}
}

// Add moves another share of the same party and queue into this one.
func (s *Share) Add(other *Share) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	s.n += other.n
	other.n = 0
}

// Move transfers s to another party, if that leaves it within its part.
func (s *Share) Move(party string) bool {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	if s.party == party {
		return true
	}
	if !s.q.inPart(party, s.n) {
		return false
	}
	n := s.n
	s.q.give(s, n)
	s.party, s.n = party, n
	s.q.held += n
	s.q.party[party] += n
	s.q.serve()
	return true
}

// Release returns the share.
func (s *Share) Release() { s.Shrink(0) }

// InUse returns how many bytes are held.
func (q *Queue) InUse() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held
}

// Total returns how many bytes there are.
func (q *Queue) Total() int64 { return q.total }
