package push

import (
	"hash/fnv"
	"time"

	"example.org/longhaul/coredns-plugin/push/followers"
	"example.org/longhaul/coredns-plugin/push/wire"
)

const (
	// mostRemotes bounds the remotes that are known. The one that has been away longest is forgotten.
	mostRemotes = 4096
	// mostHad bounds the responses that one remote is known to have, and mostHadOfAll those of all remotes: 24 MiB.
	mostHad      = 1 << 15
	mostHadOfAll = 1 << 20
)

// remote is what is known of a remote's memory.
type remote struct {
	id wire.ID
	// had leads from the hash of a question to the time until which the remote has its response, in seconds of Unix time.
	had map[uint64]uint32
	// open is the number of its streams, and seen is when the last one ended.
	open int
	seen time.Time
}

// remotes are those that had a stream. A remote keeps its number until it is forgotten.
type remotes struct {
	byNumber []*remote
	hadOfAll int
}

// of returns the number of a remote.
func (r *remotes) of(id wire.ID, now time.Time) followers.Remote {
	longest := -1
	for number, known := range r.byNumber {
		if known.id == id {
			return followers.Remote(number)
		}
		if known.open == 0 && (longest < 0 || known.seen.Before(r.byNumber[longest].seen)) {
			longest = number
		}
	}
	fresh := &remote{id: id, had: map[uint64]uint32{}, seen: now}
	if len(r.byNumber) < mostRemotes || longest < 0 {
		r.byNumber = append(r.byNumber, fresh)
		return followers.Remote(len(r.byNumber) - 1)
	}
	r.hadOfAll -= len(r.byNumber[longest].had)
	r.byNumber[longest] = fresh
	return followers.Remote(longest)
}

// has returns true if the remote has the response to a question.
func (r *remotes) has(number followers.Remote, question wire.Question, now time.Time) bool {
	known := r.byNumber[number]
	until, ok := known.had[hashOf(known.id, question)]
	return ok && now.Unix() < int64(until)
}

// set notes that the remote has the response to a question until a time. A time that has passed: it has none.
func (r *remotes) set(number followers.Remote, question wire.Question, until, now time.Time) {
	known := r.byNumber[number]
	hash := hashOf(known.id, question)
	before := len(known.had)
	if until.After(now) {
		r.reserve(known, now)
		before = len(known.had)
		known.had[hash] = uint32(until.Unix())
	} else {
		delete(known.had, hash)
	}
	r.hadOfAll += len(known.had) - before
}

// reserve makes room for a response. What is forgotten is sent once more than needed.
func (r *remotes) reserve(known *remote, now time.Time) {
	if len(known.had) < mostHad && r.hadOfAll < mostHadOfAll {
		return
	}
	for _, other := range r.byNumber {
		before := len(other.had)
		for hash, until := range other.had {
			if int64(until) <= now.Unix() || other.open == 0 && r.hadOfAll >= mostHadOfAll {
				delete(other.had, hash)
			}
		}
		r.hadOfAll += len(other.had) - before
	}
	if len(known.had) < mostHad && r.hadOfAll < mostHadOfAll {
		return
	}
	// Any quarter, so that this is not repeated soon.
	before := len(known.had)
	for hash := range known.had {
		if len(known.had) <= before-before/4 {
			break
		}
		delete(known.had, hash)
	}
	r.hadOfAll += len(known.had) - before
}

// hashOf is the same after a restart. Another question with the same hash is not sent, and asked.
func hashOf(id wire.ID, question wire.Question) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write(id[:])
	_, _ = sum.Write([]byte{byte(question.Type >> 8), byte(question.Type)})
	_, _ = sum.Write([]byte(question.Name))
	return sum.Sum64()
}
