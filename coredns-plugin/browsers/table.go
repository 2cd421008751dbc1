package browsers

import (
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Table knows what browsers ask for now, and which names have an address. All its methods may be called at once.
type Table struct {
	mu    sync.Mutex
	pairs pairs
	book  *book
	// followers get the mappings that become known.
	followers map[chan Mapping]struct{}
}

// Truth is what the question for a name's true address brought.
type Truth struct {
	// Known is false if no resolver said anything about the name.
	Known bool
	// Addr is not valid if the name has no address that a client may reach.
	Addr netip.Addr
	// Absent: there is no such name.
	Absent bool
}

// Mapping is the address of a name and its true one, not valid if there is none.
type Mapping struct {
	Instant, True netip.Addr
	Absent        bool // there is no such name
}

// mostUpdates bounds what a follower has not taken yet. One that is slower begins anew.
const mostUpdates = 1024

// New makes the table of a range.
func New(within netip.Prefix) *Table {
	return &Table{pairs: newPairs(), book: newBook(within), followers: map[chan Mapping]struct{}{}}
}

// tables are those of this process, by their ranges.
var tables = struct {
	sync.Mutex
	known map[netip.Prefix]*Table
}{known: map[netip.Prefix]*Table{}}

// Of returns the table of a range. A reload of the Corefile keeps it, so no address changes its name.
func Of(within netip.Prefix) *Table {
	tables.Lock()
	defer tables.Unlock()
	known := tables.known[within]
	if known == nil {
		known = New(within)
		tables.known[within] = known
	}
	return known
}

// Arrival is the result of a query that the memory has no response to.
type Arrival struct {
	Outcome Outcome
	// Wait is nil where the query waits for the truth alone.
	Wait *Wait
	// Begun: the name has its address now, and somebody must ask for its truth and call Settle.
	Begun bool
}

// Arrive takes a query of a client, of one of the types A, AAAA and HTTPS. The outcome is Alone as long as the query has no
// partner.
func (t *Table) Arrive(client netip.Addr, name string, qtype uint16, now time.Time) Arrival {
	name = key(name)
	t.mu.Lock()
	defer t.mu.Unlock()
	if outcome := t.book.judge(name, client, now); outcome != Instant {
		return Arrival{Outcome: outcome}
	}
	is := t.pairs.arrive(visit{client, name}, qtype, now)
	if is == nil {
		return Arrival{Outcome: Full}
	}
	if !is.complete() {
		return Arrival{Outcome: Alone, Wait: is.wait(qtype, now)}
	}
	addr, begun, ok := t.book.place(name, client, now)
	if !ok {
		return Arrival{Outcome: Full}
	}
	return Arrival{Outcome: Instant, Wait: is.answer(addr, now), Begun: begun}
}

// Settle notes that the truth of a name is known, or that it could not be had. From then on its lookups wait for the truth.
func (t *Table) Settle(name string, truth Truth, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	mapping, ok := t.book.settle(key(name), truth, now)
	if !ok {
		return
	}
	for follower := range t.followers {
		select {
		case follower <- mapping:
		default:
			t.drop(follower)
		}
	}
}

// Follow returns the mappings that are known, and a channel of those that become known. The channel is closed if nobody takes
// them for too long, and by leave.
func (t *Table) Follow() (known []Mapping, updates <-chan Mapping, leave func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	follower := make(chan Mapping, mostUpdates)
	t.followers[follower] = struct{}{}
	return t.book.mappings(), follower, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.drop(follower)
	}
}

func (t *Table) drop(follower chan Mapping) {
	if _, ok := t.followers[follower]; ok {
		delete(t.followers, follower)
		close(follower)
	}
}

// Names returns the number of names with an address.
func (t *Table) Names() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.book.names)
}

func key(name string) string { return strings.ToLower(name) }
