// Package follow reads sessions for surfaces that have many clients: one reader of a
// session feeds all who look at it. Each surface keeps its own [Projection], which turns
// what the session sends into what its clients are sent.
//
// # What a set promises
//
//   - A session has at most one [Follower] in a [Set], and a follower has one reader of
//     the session, from its start to its end. Two of them never overlap: a projection may
//     own a file.
//   - [Set.Join] returns a follower that has caught up, and that does not end by itself
//     while somebody holds it. A client that comes while a follower ends waits until that
//     one is gone, and gets the next.
//   - When the last client has left, the follower lingers, because clients that have
//     lost their connection come back. It does not end while its projection is busy.
//   - A follower that cannot start is forgotten: those who waited for it get the error,
//     and the next to join tries again.
//   - When the session lets go of a follower, because it was closed or archived, the
//     projection is told so.
//
// # Concurrency
//
// A follower has one goroutine, which starts it, keeps its connection alive and ends it;
// the session delivers items on its own. The follower's lock is held while an item is
// taken and while what was deferred is flushed, so a client that takes the lock sees the
// projection between two items. A projection must not wait for clients: the set has no
// queues, and a slow client is the surface's to cut off. A slow projection delays its own
// session alone. [Set.Close] waits for every goroutine.
package follow
