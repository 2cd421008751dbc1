package push

import (
	"context"
	"sync"
	"time"

	"example.org/longhaul/coredns-plugin/push/followers"
	"example.org/longhaul/coredns-plugin/push/wire"
)

const (
	// waiting bounds the questions of a remote whose responses are fetched next.
	waiting = 1024
	// atOnce bounds those under way, for each remote.
	atOnce = 16
	// mostUnsent bounds the bytes that wait for the link, for each remote. What is beyond is not sent.
	mostUnsent = 256 << 10
	// patience is the longest time for a response.
	patience = 10 * time.Second
	// pageTime is the time after a name in which a page of that host is what its remote loads, and mostTriggers bounds the
	// names within it.
	pageTime     = 30 * time.Second
	mostTriggers = 64
)

// session is an open stream of a remote.
type session struct {
	hello  wire.Hello
	remote followers.Remote
	jobs   chan job

	// What follows belongs to the hub's lock.
	// under are the questions that wait or are under way.
	under map[wire.Question]bool
	// asked is when the remote asked for anything, and triggers are the names of late.
	asked    time.Time
	triggers map[string]time.Time
	// ahead is what may be sent of popular names now, in bytes.
	ahead int

	unsent unsent
}

// job is a question whose response is sent.
type job struct {
	question wire.Question
	reason   reason
}

// client returns the client of a hash.
func (s *session) client(hash wire.Hash) followers.Client {
	return followers.Client{Remote: s.remote, Period: s.hello.Period, Hash: hash}
}

// trigger notes that a name was asked.
func (s *session) trigger(name string, now time.Time) {
	if len(s.triggers) >= mostTriggers {
		for other, at := range s.triggers {
			if now.Sub(at) > pageTime {
				delete(s.triggers, other)
			}
		}
	}
	if len(s.triggers) < mostTriggers {
		s.triggers[name] = now
	}
}

// unsent are the frames that wait for the link.
type unsent struct {
	mu     sync.Mutex
	frames []byte
	wake   chan struct{}
}

// add adds a frame, and returns false if too many wait.
func (u *unsent) add(frame []byte) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.frames)+len(frame) > mostUnsent {
		return false
	}
	u.frames = append(u.frames, frame...)
	select {
	case u.wake <- struct{}{}:
	default:
	}
	return true
}

// take returns the frames that wait, after some are there. False: ctx ended first.
func (u *unsent) take(ctx context.Context) ([]byte, bool) {
	for {
		select {
		case <-u.wake:
		case <-ctx.Done():
			return nil, false
		}
		u.mu.Lock()
		frames := u.frames
		u.frames = nil
		u.mu.Unlock()
		if len(frames) > 0 {
			return frames, true
		}
	}
}

// empty returns true if no frame waits.
func (u *unsent) empty() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.frames) == 0
}
