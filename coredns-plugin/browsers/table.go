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
}

// New makes the table of a range.
func New(within netip.Prefix) *Table {
	return &Table{pairs: newPairs(), book: newBook(within)}
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

// Arrival is what becomes of a query that the memory has no response to.
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
func (t *Table) Settle(name string, known bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.book.settle(key(name), known, now)
}

// Names returns the number of names with an address.
func (t *Table) Names() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.book.names)
}

func key(name string) string { return strings.ToLower(name) }
